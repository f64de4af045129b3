import { expect } from "@jest/globals";
import type { Management, seedProject } from "./management-fixture.ts";

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
    return rows.map((row) => JSON.parse(row.payload)).filter((event) => event.flag.id === flagId);
  }

  async function historyOf(flagId: string) {
    return management.sql`
      select enabled, rollout_percentage, targeting_rules, change_type, changed_by from history
      where flag_id = ${flagId} and environment_id = ${project.environmentId}
      order by sequence`;
  }

  return { freshKey, post, createFlag, patch, eventsOf, historyOf };
}
