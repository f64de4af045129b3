import type { Sql, Transaction } from "@halyard/postgres";

/**
 * Maximum of a sum, which both JavaScript and PostgreSQL represent exactly. An application can report any number of
 * evaluations. Without a maximum, it could let the sum of a flag overflow, and no message with this flag could be
 * counted.
 */
export const maxSum = Number.MAX_SAFE_INTEGER;

/**
 * The tables that messages add to, in the order of their locks in a transaction. Rows are locked in the order of the
 * primary key, so that transactions wait for one another but never deadlock.
 */
export const sumTables = {
  months: describe("organization_months", {
    key: { month: "date", organization_id: "uuid" },
    value: { requests: "bigint" },
    returning: "organization_id, to_char(known.month, 'YYYY-MM') as month, known.requests",
  }),
  requests: describe("request_hours", {
    key: { organization_id: "uuid", hour: "timestamptz", environment_id: "uuid", endpoint: "text" },
    also: { project_id: "uuid" },
    value: { requests: "bigint" },
  }),
  bulkAnswers: describe("bulk_answer_hours", {
    key: { environment_id: "uuid", hour: "timestamptz" },
    value: { answers: "bigint" },
  }),
  flags: describe("flag_hours", {
    key: { flag_id: "uuid", environment_id: "uuid", hour: "timestamptz" },
    value: { evaluations: "bigint" },
  }),
  variations: describe("variation_hours", {
    key: { flag_id: "uuid", environment_id: "uuid", hour: "timestamptz", variation: "text" },
    value: { evaluations: "bigint" },
  }),
  environmentsSeen: describe("environments_last_seen", {
    key: { environment_id: "uuid" },
    value: { evaluated_at: "timestamptz" },
  }),
  flagsSeen: describe("flags_last_seen", {
    key: { flag_id: "uuid", environment_id: "uuid" },
    value: { evaluated_at: "timestamptz", evaluations: "bigint" },
  }),
  keysSeen: describe("keys_last_seen", {
    key: { key_id: "text" },
    value: { used_at: "timestamptz" },
  }),
};

export type SumRow = Record<string, string | number>;

export type SumTable<Row = SumRow> = {
  name: string;
  /** Columns and types of the primary key. */
  key: Readonly<Record<string, ColumnType>>;
  /** The first of the values. */
  value: string;
  /** The columns with a number, which is summed, or with a time, where the latest is kept. */
  values: readonly string[];
  columns: readonly string[];
  upsert: TemplateStringsArray;
  /** Never set. It ties the type of rows to the table. */
  row?: Row;
};

type ColumnType = "uuid" | "text" | "timestamptz" | "date" | "bigint";
type Columns = Readonly<Record<string, ColumnType>>;
/** Times and dates are texts in ISO 8601. */
type RowOf<Of> = { [Column in keyof Of]: Of[Column] extends "bigint" ? number : string };

/** Describes a table. `also` has the columns that depend on the key. */
function describe<
  const Key extends Columns,
  const Value extends Columns,
  const Also extends Columns = Record<never, never>,
>(
  name: string,
  { key, value, also, returning }: { key: Key; value: Value; also?: Also; returning?: string },
): SumTable<RowOf<Key & Also & Value>> {
  const types: Columns = { ...key, ...also, ...value };
  const columns = Object.keys(types);
  const values = Object.keys(value);
  const [firstValue = ""] = values;
  const isSeen = value[firstValue] === "timestamptz";
  const isChanged =
    isSeen && values.length === 1 ? `where known.${firstValue} < excluded.${firstValue}` : "";
  const merged = values.map((column) => (value[column] === "bigint" ? sum : latest)(column));
  const parameters = Object.values(types).map((type) => `?::${parameterType(type)}[]`);
  const typed = (column: string) => `${column}::${types[column]}`;
  const keys = Object.keys(key);
  const upsert = `
    insert into ${name} as known (${columns.join()}${isSeen ? ", news" : ""})
    select ${columns.map(typed).join()}${isSeen ? ", 'first'" : ""}
    from unnest(${parameters.join()}) as given (${columns.join()})
    order by ${keys.map(typed).join()}
    on conflict (${keys.join()}) do update set ${merged.join()} ${isChanged}
    ${returning === undefined ? "" : `returning ${returning}`}`;
  return { name, key, value: firstValue, values, columns, upsert: statementOf(upsert) };
}

/** Returns the sum of two counts, at most the maximum. */
export function addUp(one: number, other: number): number {
  return Math.min(one + other, maxSum);
}

function sum(column: string): string {
  return `${column} = least(known.${column} + excluded.${column}, ${maxSum})`;
}

/** Keeps the later time, and marks it as unsent to management if it has changed. */
function latest(column: string): string {
  return `${column} = greatest(known.${column}, excluded.${column}),
    news = case when known.news = 'none' and known.${column} < excluded.${column} then 'later'
      else known.news end`;
}

/** Returns the type of an array parameter's elements. Times and dates are sent as text. */
export function parameterType(type: ColumnType | undefined) {
  return type === "timestamptz" || type === "date" ? "text" : type;
}

/** Builds a statement from names in the program. Each `?` is a parameter. */
export function statementOf(text: string): TemplateStringsArray {
  const parts = text.split("?");
  return Object.assign(parts, { raw: parts });
}

/** Merges rows with different keys into their table. The cost does not depend on the size of the table. */
export function upsertRows(tx: Sql | Transaction, table: SumTable, rows: readonly SumRow[]) {
  const values = table.columns.map((column) => rows.map((row) => row[column] as string));
  return tx<SumRow[]>(table.upsert, ...values);
}
