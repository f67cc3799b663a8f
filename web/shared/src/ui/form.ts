// Small helpers of forms whose fields keep their own values until they are sent.

/** Puts the cursor into a field by its name, where a person has to look next. */
export function focusField(form: HTMLFormElement | null, name: string) {
  form?.querySelector<HTMLInputElement>(`input[name="${name}"]`)?.focus();
}

/** The same for any kind of field of a long form, and scrolls to it and what is written below it. Answers whether there is one. */
export function showField(form: HTMLFormElement | null, name: string): boolean {
  const field = form?.elements.namedItem(name);
  if (!(field instanceof HTMLElement)) return false;
  field.focus({ preventScroll: true });
  field.scrollIntoView({ block: 'center' });
  return true;
}

/** A text field's value; a file or a missing field counts as empty. */
export function fieldText(data: FormData, name: string): string {
  const value = data.get(name);
  return typeof value === 'string' ? value : '';
}
