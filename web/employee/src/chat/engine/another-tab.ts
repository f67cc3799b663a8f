// For tests: what follows happens in a tab that has nothing of the one before but what all tabs of a browser share.
export function anotherTab() {
  sessionStorage.clear();
  // A page that comes back from where the browser puts them away reads anew what is its own.
  window.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
}
