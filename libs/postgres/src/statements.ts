/**
 * Runs statements as tagged templates: `` sql<Row[]>`select … where id = ${id}` `` resolves with the rows. The
 * statement is sent immediately. Each value becomes a parameter. A `fragment` becomes part of the text.
 */
export type Statements = {
  <T extends readonly object[] = AnyRow[]>(
    strings: TemplateStringsArray,
    ...values: readonly (Value | Fragment)[]
  ): Promise<Rows<T>>;
  /**
   * Runs a statement that PostgreSQL plans each time, for these values. A statement from a template is prepared. From
   * its sixth execution on, PostgreSQL may use a generic plan, which may be bad for these values or for tables that
   * have grown since.
   */
  unprepared<T extends readonly object[] = AnyRow[]>(
    text: string,
    values?: readonly Value[],
  ): Promise<Rows<T>>;
};

/** A parameter. Lists are parameters of an array type: `any(${ids}::uuid[])`. Use `json` for objects. */
type Value = Scalar | readonly Scalar[];
type Scalar = string | number | bigint | boolean | Date | Uint8Array | null;

/** The rows of a result, with the number of rows that the statement returned or changed. */
export type Rows<T extends readonly object[]> = T & { readonly count: number };
// biome-ignore lint/suspicious/noExplicitAny: a statement without a row type has columns of any type.
type AnyRow = Record<string, any>;

/** A part of a statement's text, with its values. */
export class Fragment {
  readonly strings: TemplateStringsArray;
  readonly values: readonly (Value | Fragment)[];

  constructor(strings: TemplateStringsArray, values: readonly (Value | Fragment)[]) {
    this.strings = strings;
    this.values = values;
  }
}

export function fragment(
  strings: TemplateStringsArray,
  ...values: readonly (Value | Fragment)[]
): Fragment {
  return new Fragment(strings, values);
}

/** Returns the value as a parameter of type `json` or `jsonb`. */
export function json(value: unknown): string {
  return JSON.stringify(value);
}

/** A statement in the form of the protocol. Without a name, it is not prepared. */
export type Statement = { name?: string; text: string; values?: Value[] };

/** `run` receives a function that returns the statement, because an invalid parameter makes it throw. */
export function createStatements(
  run: (form: () => Statement) => Promise<Rows<AnyRow[]>>,
): Statements {
  const prepared = (strings: TemplateStringsArray, ...values: readonly (Value | Fragment)[]) =>
    run(() => preparedStatement(strings, values));
  const unprepared = (text: string, values: readonly Value[] = []) =>
    run(() => ({ text, values: values.map(parameter) }));
  return Object.assign(prepared, { unprepared }) as Statements;
}

/** Text and name of the templates without fragments. */
const templates = new WeakMap<TemplateStringsArray, { name: string; text: string }>();
/** Names of prepared statements by text. Texts come only from templates, so their number is bounded. */
const names = new Map<string, string>();

function preparedStatement(
  strings: TemplateStringsArray,
  given: readonly (Value | Fragment)[],
): Required<Statement> {
  const known = templates.get(strings);
  if (known !== undefined) return { ...known, values: given.map(parameter) };
  const values: Value[] = [];
  const text = textOf({ strings, values: given }, values);
  const name = names.get(text) ?? `s${names.size}`;
  names.set(text, name);
  if (values.length === given.length && !given.some((value) => value instanceof Fragment))
    templates.set(strings, { name, text });
  return { name, text, values };
}

/** Returns the text, and appends the parameters to `values`. */
function textOf(part: Pick<Fragment, "strings" | "values">, values: Value[]): string {
  let text = part.strings[0] ?? "";
  for (const [index, value] of part.values.entries()) {
    text += value instanceof Fragment ? textOf(value, values) : `$${values.push(parameter(value))}`;
    text += part.strings[index + 1];
  }
  return text;
}

function parameter(value: unknown): Value {
  if (value === undefined) throw new TypeError("A parameter of a statement is undefined.");
  if (value instanceof Date) return value.toISOString();
  // The client would convert an object, and might fail, when it sends the statement. A COMMIT may then follow already.
  if (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value)
  )
    throw new TypeError("A parameter of a statement is an object: convert it with `json`.");
  return value as Value;
}
