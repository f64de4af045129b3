import type { OperatorCategory } from "./operator-names.ts";

/** Values that the operators of each category compare with, for error messages and the OpenAPI document. */
export const expectedValues: { readonly [category in OperatorCategory]: string } = {
  string: "a text, a number or a boolean for this operator, not an array",
  list: 'a list for this operator: an array of texts, numbers or booleans, or a text with commas such as "DE,AT,CH"',
  number:
    'a number for this operator, such as 18 or "18.5", or a date-time with time and zone, such as "2027-01-31T09:00:00Z"',
  semver: 'a version as a text for this operator, such as "2.3.0" or "3.0.0-rc.1"',
};
