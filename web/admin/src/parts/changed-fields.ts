// What a form changed of a record. A PATCH leaves alone what it does not name: so a form that was open for a while does
// not undo what somebody else changed meanwhile, and never touches a secret that it does not show.

/** The fields of the body that have a value, and another one than in the record. */
export function changedFields<Body extends object>(
  record: Readonly<Partial<Record<keyof Body, unknown>>>,
  body: Body,
): Partial<Body> {
  const entries = Object.entries(body).filter(([name, value]) => {
    const before = record[name as keyof Body] ?? null;
    return value !== undefined && JSON.stringify(value) !== JSON.stringify(before);
  });
  return Object.fromEntries(entries) as Partial<Body>;
}
