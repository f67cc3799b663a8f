// Small helpers of forms whose fields keep their own values until they are sent.

/** Puts the cursor into a field by its name, where a person has to look next. */
export function focusField(form: HTMLFormElement | null, name: string) {
  form?.querySelector<HTMLInputElement>(`input[name="${name}"]`)?.focus();
}

/** A text field's value; a file or a missing field counts as empty. */
export function fieldText(data: FormData, name: string): string {
  const value = data.get(name);
  return typeof value === 'string' ? value : '';
}
