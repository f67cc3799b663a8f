// What a form finds wrong with its own fields before it sends anything: a text for each of them, by the field's name.

export class FieldProblems extends Error {
  override readonly name = 'FieldProblems';

  constructor(readonly fields: Readonly<Record<string, string>>) {
    super(Object.keys(fields).join(', '));
  }
}
