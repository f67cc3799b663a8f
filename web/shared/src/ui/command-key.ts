// The key that opens the command palette, and what is typed before it is there; apart from it, since every page listens and
// few people press.
import { useCallback, useEffect, useState } from 'react';

/** Calls back on Ctrl/⌘K, wherever the focus is. */
export function useCommandKey(onPress: () => void) {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      onPress();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [onPress]);
}

export interface PaletteText {
  text: string;
  onText: (text: string) => void;
  /** The palette's field has the focus: from now on it takes the keys itself. */
  onReady: () => void;
}

/** The palette's text. The palette's code is fetched when it is opened: what is typed until its field has the focus would be lost. */
export function usePaletteText(open: boolean, onClose: () => void): PaletteText {
  const [text, setText] = useState('');
  const [ready, setReady] = useState(false);
  if (!open && (ready || text !== '')) {
    setReady(false);
    setText('');
  }
  useEffect(() => {
    if (!open || ready) return;
    const press = (event: KeyboardEvent) => {
      // An input method's keys are not letters yet.
      if (event.isComposing || event.key === 'Process') return;
      const command = (event.ctrlKey || event.altKey) && !event.getModifierState('AltGraph');
      if (command || event.metaKey) return;
      if (event.key === 'Escape') onClose();
      else if (event.key === 'Backspace') setText((before) => Array.from(before).slice(0, -1).join(''));
      else if (Array.from(event.key).length === 1) setText((before) => before + event.key);
      // Enter must not send what stands in the field that has the focus still.
      else if (event.key !== 'Enter') return;
      event.preventDefault();
      event.stopPropagation();
    };
    window.addEventListener('keydown', press, true);
    return () => window.removeEventListener('keydown', press, true);
  }, [open, ready, onClose]);
  return { text, onText: setText, onReady: useCallback(() => setReady(true), []) };
}
