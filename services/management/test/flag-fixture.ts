import type { Sql } from "@halyard/postgres";
import { expect } from "@jest/globals";
import { findBreaks } from "../src/history/verification.ts";
import type { Management, seedProject } from "./management-fixture.ts";
import { entriesOf } from "./tenancy-fixture.ts";

type Project = Awaited<ReturnType<typeof seedProject>>;

/** Creates and changes flags with the project's server key, and reads their events and history. */
export function flagsOf(management: Management, project: Project) {
  let counter = 0;
  const key = project.serverKey;
  const freshKey = () => `flag-${++counter}`;

  const post = (body: unknown) => management.call("/api/v1/flags", { method: "POST", key, body });

  async function createFlag(body: Record<string, unknown> = {}) {
    const answer = await post({ key: freshKey(), name: "A flag", ...body });
    expect(answer.status).toBe(201);
    return answer.body;
  }

  const patch = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    management.call(path, { method: "PATCH", key, body, headers });

  async function eventsOf(flagId: string) {
    const rows = await management.sql<{ payload: string }[]>`
      select payload from outbox where stream = 'events' order by id`;
    return rows.map((row) => JSON.parse(row.payload)).filter((event) => event.flag?.id === flagId);
  }

  async function historyOf(flagId: string): Promise<Record<string, unknown>[]> {
    const rows = await management.sql<{ content: object }[]>`
      select content, change_type, changed_by from history
      where flag_id = ${flagId} and environment_id = ${project.environmentId}
      order by sequence`;
    return rows.map(({ content, ...entry }) => ({ ...content, ...entry }));
  }

  /** Returns the snapshot entries of a flag in an environment, oldest first. */
  const flagEntriesOf = (flagId: string, environmentId = project.environmentId) =>
    entriesOf(management, `${project.organizationId}.flag.${environmentId}.${flagId}`);

  return { freshKey, post, createFlag, patch, eventsOf, historyOf, flagEntriesOf };
}

/** Expects that no chain is broken, and that every state equals the newest entry of its history. */
export async function expectWholeHistory(sql: Sql): Promise<void> {
  expect(await findBreaks(sql)).toMatchObject({ breaks: 0 });
  const differing = await sql`
    select state.flag_id, state.environment_id
    from flag_states as state
    left join lateral (
      select * from history as entry
      where entry.flag_id = state.flag_id and entry.environment_id = state.environment_id
      order by entry.sequence desc
      limit 1
    ) as newest on true
    where (newest.content, newest.changed_at) is distinct from (state.content, state.updated_at)`;
  expect(differing).toEqual([]);
}
