// The one function of the package `qrcode` that we use: it makes the modules, we draw them.
declare module 'qrcode/lib/core/qrcode.js' {
  interface Code {
    modules: { size: number; data: Uint8Array };
  }
  const core: { create: (text: string, options?: { errorCorrectionLevel?: 'L' | 'M' | 'Q' | 'H' }) => Code };
  export default core;
}
