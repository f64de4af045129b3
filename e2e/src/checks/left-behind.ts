import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { Source } from "./traces.ts";

/** Everything that a system keeps, as places to be searched. */

/** Every row of every table that is not PostgreSQL's own, as text. */
export async function databaseRows(sql: postgres.Sql): Promise<Source[]> {
  const tables = await sql<{ schema: string; name: string }[]>`
    select schemaname as schema, tablename as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')
    order by schemaname, tablename`;
  const sources: Source[] = [];
  for (const { schema, name } of tables) {
    const rows = await sql<{ row: string }[]>`
      select t::text as row from ${sql(schema)}.${sql(name)} as t`;
    sources.push({
      name: `table ${schema}.${name}`,
      content: rows.map(({ row }) => row).join("\n"),
    });
  }
  return sources;
}

/** Every message of every stream that NATS has, with its subject and headers. */
export async function streamMessages(natsUrl: string): Promise<Source[]> {
  const connection = await connect({ servers: natsUrl });
  try {
    const { streams } = await jetstreamManager(connection);
    const sources: Source[] = [];
    for await (const { config, state } of streams.list()) {
      const content: Buffer[] = [];
      // Of a stream that never held anything the range is from 0 to 0, which is no message's number.
      for (let seq = Math.max(state.first_seq, 1); seq <= state.last_seq; seq += 1) {
        // A message that a newer one has replaced is gone, though its number is within the range.
        const message = await streams.getMessage(config.name, { seq });
        if (message === null) continue;
        const head = `\n${message.subject} ${message.header?.toString() ?? ""}\n`;
        content.push(Buffer.from(head), Buffer.from(message.data));
      }
      sources.push({ name: `stream ${config.name}`, content: Buffer.concat(content) });
    }
    return sources;
  } finally {
    await connection.close();
  }
}

/** All that passes over NATS from now on, also what is gone as soon as it has been read. */
export type CapturedTraffic = { sources(): Source[]; close(): Promise<void> };

export async function captureTraffic(natsUrl: string): Promise<CapturedTraffic> {
  const connection = await connect({ servers: natsUrl });
  const captured = new Map<string, Buffer[]>();
  connection.subscribe(">", {
    callback: (_error, { subject, headers, data }) => {
      const [kind = ""] = subject.split(".");
      const parts = captured.get(kind) ?? [];
      captured.set(kind, parts);
      parts.push(Buffer.from(`\n${subject} ${headers?.toString() ?? ""}\n`), Buffer.from(data));
    },
  });
  await connection.flush();
  return {
    sources: () =>
      [...captured].map(([kind, parts]) => ({
        name: `told ${kind}`,
        content: Buffer.concat(parts),
      })),
    close: () => connection.close(),
  };
}

/** The files below directories, and among `paths` itself, that were written at or after a time. */
export function* filesWritten(paths: readonly string[], sinceMs: number): Generator<Source> {
  for (const path of paths) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory())
      yield* filesWritten(
        readdirSync(path).map((name) => join(path, name)),
        sinceMs,
      );
    else if (stat?.isFile() && stat.mtimeMs >= sinceMs)
      yield { name: `file ${path}`, content: readFileSync(path) };
  }
}
