import { createStatements, type Sql, type Statement } from "@halyard/postgres";

/** Returns the statements that the work runs. Each of them returns no rows. */
export async function recordedStatements(work: (sql: Sql) => unknown): Promise<Statement[]> {
  const recorded: Statement[] = [];
  const statements = createStatements(async (form) => {
    recorded.push(form());
    return Object.assign([], { count: 0 });
  });
  await work(statements as Sql);
  return recorded;
}
