// The key that opens the command palette; apart from it, since every page listens and few people press.
import { useEffect } from 'react';

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
