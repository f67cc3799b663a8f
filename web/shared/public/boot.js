// Runs before the first paint, so that neither the theme nor the language flickers. It is a file of its own because
// the Content-Security-Policy allows no inline scripts. Keys and values are those of src/theme.ts and src/i18n/language.ts.
(function () {
  var root = document.documentElement;
  var stored = function (key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  var theme = stored('tidepool.theme');
  if (theme !== 'light' && theme !== 'dark') {
    theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }
  root.dataset.theme = theme;
  var language = stored('tidepool.language') || navigator.language || 'en';
  root.lang = /^zh/i.test(language) ? 'zh-CN' : 'en';
})();
