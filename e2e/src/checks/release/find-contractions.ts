import type { Column, DatabaseSchema } from "./database-schema.ts";

/**
 * Returns the changes of a schema that can make statements of the previous release fail. During a rolling upgrade, both
 * releases use the database.
 */
export function findContractions(before: DatabaseSchema, after: DatabaseSchema): string[] {
  return [
    ...missing("grant", before.grants, after.grants),
    ...missing("function", before.functions, after.functions),
    ...contractionsOfColumns(before.columns, after.columns),
    ...contractionsOfRules(before, after),
  ];
}

function missing(kind: string, before: readonly string[], after: readonly string[]): string[] {
  const left = new Set(after);
  return before.filter((name) => !left.has(name)).map((name) => `missing ${kind}: ${name}`);
}

function contractionsOfColumns(
  before: Record<string, Column>,
  after: Record<string, Column>,
): string[] {
  const found = missing("column", Object.keys(before), Object.keys(after));
  const tables = new Set(Object.keys(before).map(tableOf));
  for (const [name, column] of Object.entries(after)) {
    const old = before[name];
    if (old === undefined) {
      const isFilled = column.nullable || column.hasDefault;
      if (tables.has(tableOf(name)) && !isFilled) found.push(`new required column: ${name}`);
      continue;
    }
    if (old.type !== column.type) found.push(`changed type: ${name} is ${column.type}`);
    if (old.nullable && !column.nullable) found.push(`no longer nullable: ${name}`);
    if (old.hasDefault && !column.hasDefault) found.push(`missing default: ${name}`);
  }
  return found;
}

/**
 * Returns changes of keys and checks. A key or check on a column of the previous release can reject its writes, and `on
 * conflict` needs its unique index. A dropped check rejects nothing.
 */
function contractionsOfRules(before: DatabaseSchema, after: DatabaseSchema): string[] {
  const found: string[] = [];
  for (const [name, rule] of Object.entries(before.rules))
    if (rule.isUnique && after.rules[name] === undefined) found.push(`missing unique key: ${name}`);
  for (const [name, rule] of Object.entries(after.rules)) {
    const concernsOld = rule.columns.some((column) => `${rule.table}.${column}` in before.columns);
    const isNew = before.rules[name]?.definition !== rule.definition;
    if (concernsOld && isNew) found.push(`new rule: ${name} ${rule.definition}`);
  }
  return found;
}

function tableOf(column: string): string {
  return column.slice(0, column.lastIndexOf("."));
}
