import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { Place } from "./traces.ts";

/** Everything that a system keeps, as places to be searched. */

/** Every row of every table that is not PostgreSQL's own, as text. */
export async function databaseRows(sql: postgres.Sql): Promise<Place[]> {
  const tables = await sql<{ schema: string; name: string }[]>`
    select schemaname as schema, tablename as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')
    order by schemaname, tablename`;
  const places: Place[] = [];
  for (const { schema, name } of tables) {
    const rows = await sql<{ row: string }[]>`
      select t::text as row from ${sql(schema)}.${sql(name)} as t`;
    places.push({
      name: `table ${schema}.${name}`,
      content: rows.map(({ row }) => row).join("\n"),
    });
  }
  return places;
}

/** Every message of every stream that NATS has, with its subject and headers. */
export async function streamMessages(natsUrl: string): Promise<Place[]> {
  const connection = await connect({ servers: natsUrl });
  try {
    const { streams } = await jetstreamManager(connection);
    const places: Place[] = [];
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
      places.push({ name: `stream ${config.name}`, content: Buffer.concat(content) });
    }
    return places;
  } finally {
    await connection.close();
  }
}

/** All that passes over NATS from now on, also what is gone as soon as it has been read. */
export type Overheard = { places(): Place[]; close(): Promise<void> };

export async function overhear(natsUrl: string): Promise<Overheard> {
  const connection = await connect({ servers: natsUrl });
  const heard = new Map<string, Buffer[]>();
  connection.subscribe(">", {
    callback: (_error, { subject, headers, data }) => {
      const [kind = ""] = subject.split(".");
      const parts = heard.get(kind) ?? [];
      heard.set(kind, parts);
      parts.push(Buffer.from(`\n${subject} ${headers?.toString() ?? ""}\n`), Buffer.from(data));
    },
  });
  await connection.flush();
  return {
    places: () =>
      [...heard].map(([kind, parts]) => ({ name: `told ${kind}`, content: Buffer.concat(parts) })),
    close: () => connection.close(),
  };
}

/** The files below directories, and among `paths` itself, that were written at or after a time. */
export function* filesWritten(paths: readonly string[], sinceMs: number): Generator<Place> {
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
