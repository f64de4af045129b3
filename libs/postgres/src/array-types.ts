/**
 * Arrays of these types can be given as parameters, with a cast in the statement: `${ids}::bigint[]`.
 *
 * The client library would ask each new connection for all array types there are. That costs a round
 * trip, and a connection that is lost during it ends the process by a rejection that nobody hears.
 */
const arrayTypes = { boolean: 1000, text: 1009, bigint: 1016, uuid: 2951 };

type ArrayType = {
  to: number;
  from: number[];
  serialize: (values: readonly unknown[]) => string;
  parse: (text: string) => string;
};

export const arrayParameterTypes: Readonly<Record<string, ArrayType>> = Object.fromEntries(
  Object.entries(arrayTypes).map(([name, oid]) => [
    `${name}Array`,
    // No statement of ours answers an array.
    { to: oid, from: [], serialize: arrayLiteral, parse: (text) => text },
  ]),
);

/** PostgreSQL's way to write an array; every element may stand in quotes, whatever its type. */
export function arrayLiteral(values: readonly unknown[]): string {
  return `{${values.map(element).join(",")}}`;
}

function element(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return `"${String(value).replaceAll(/["\\]/g, "\\$&")}"`;
}
