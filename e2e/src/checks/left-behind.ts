import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { Source } from "./traces.ts";

/** Collects all data that a system stores or sends, as sources to search. */

/** Returns every row of every table, except those of PostgreSQL itself, as text. */
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

/** Returns every message of every stream, with its subject and headers. */
export async function streamMessages(natsUrl: string): Promise<Source[]> {
  const connection = await connect({ servers: natsUrl });
  try {
    const { streams } = await jetstreamManager(connection);
    const sources: Source[] = [];
    for await (const { config, state } of streams.list()) {
      const content: Buffer[] = [];
      // The range of a stream that never had a message is from 0 to 0, which is not the number of a message.
      for (let seq = Math.max(state.first_seq, 1); seq <= state.last_seq; seq += 1) {
        // A message that was replaced by a newer one no longer exists, although its number is in the range.
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

/** Everything that is sent over NATS from now on, including messages that no stream keeps. */
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
        name: `messages ${kind}`,
        content: Buffer.concat(parts),
      })),
    close: () => connection.close(),
  };
}

/** Returns the files in `paths`, and in directories among them, that were written since a time. */
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
