import { createStatements, type Sql, type Statement, type Transaction } from "@halyard/postgres";

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

/**
 * Runs the work in a transaction that is rolled back, and returns the scans in the plans of its statements, such as
 * `Seq Scan: deliveries`. Prepared statements are planned twice: for their values, and for any values, because
 * PostgreSQL may use the second plan later.
 */
export async function scansOf(sql: Sql, work: (sql: Sql) => Promise<unknown>): Promise<string[]> {
  const scans: string[] = [];
  const rollback = new Error("rollback");
  const running = sql.begin(async (tx) => {
    const recorded: Statement[] = [];
    await work(recordingSql(tx, recorded));
    for (const { name, text, values } of recorded) {
      scans.push(...(await plannedScans(tx, `explain (format json) ${text}`, values)));
      if (name !== undefined)
        scans.push(...(await plannedScans(tx, `explain (generic_plan, format json) ${text}`)));
    }
    throw rollback;
  });
  await running.catch((error: unknown) => {
    if (error !== rollback) throw error;
  });
  return scans;
}

/** Records the statements that run in a transaction. Transactions of the work become part of it. */
function recordingSql(tx: Transaction, recorded: Statement[]): Sql {
  const statements = createStatements((form) => {
    const statement = form();
    recorded.push(statement);
    return tx.unprepared(statement.text, statement.values);
  });
  const begin = (work: (inner: Transaction) => Promise<unknown>) => work(sql as never);
  const sql = Object.assign(statements, { begin }) as unknown as Sql;
  return sql;
}

type Node = {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  Plans?: Node[];
};

async function plannedScans(
  tx: Transaction,
  explain: string,
  values: Statement["values"] = [],
): Promise<string[]> {
  const [row] = await tx.unprepared<[{ "QUERY PLAN": [{ Plan: Node }] }]>(explain, values);
  const all = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(all)];
  return all(row["QUERY PLAN"][0].Plan)
    .filter((node) => node["Index Name"] !== undefined || node["Node Type"] === "Seq Scan")
    .map((node) => `${node["Node Type"]}: ${node["Index Name"] ?? node["Relation Name"]}`);
}
