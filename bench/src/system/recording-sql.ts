import {
  connectPostgres,
  createStatements,
  type Sql,
  type Statement,
  type Transaction,
} from "@halyard/postgres";
import { pino } from "pino";

/** A superuser connection that runs a service's statements in its schema. */
export function connectToSchema(adminUrl: string, schema: string): Sql {
  const url = new URL(adminUrl);
  url.searchParams.set("options", `-c search_path=${schema}`);
  const logger = pino({ level: "silent" });
  return connectPostgres({ url: url.href, name: "bench", maxConnections: 1, logger });
}

/**
 * Records the statements of a transaction. Transactions inside become part of it, so that it can be rolled
 * back.
 */
export function asDatabase(tx: Transaction, recorded: Statement[] = []): Sql {
  const statements = createStatements((form) => {
    const statement = form();
    recorded.push(statement);
    return tx.unprepared(statement.text, statement.values);
  });
  const begin = (work: (inner: Transaction) => Promise<unknown>) => work(sql as never);
  const sql = Object.assign(statements, { begin }) as unknown as Sql;
  return sql;
}

/** Returns the query plan of a statement. */
export async function explained(
  sql: Sql,
  options: string,
  { text, values }: Statement,
): Promise<string> {
  const lines = await sql.unprepared<{ "QUERY PLAN": string }[]>(
    `explain (${options}) ${text}`,
    values,
  );
  return lines.map((line) => line["QUERY PLAN"]).join("\n");
}

/** Returns the generic plan of a statement, or undefined if PostgreSQL plans the statement each time. */
export async function genericPlan(
  sql: Sql,
  { name, text }: Statement,
): Promise<string | undefined> {
  return name === undefined ? undefined : explained(sql, "generic_plan, costs off", { text });
}
