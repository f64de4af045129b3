import { afterAll, describe, expect, it } from "@jest/globals";
import { removeEndedRequests, removeOldDrafts } from "../../src/change-requests/request-store.ts";
import { openManagement } from "../management-fixture.ts";
import { type Person, reviewsOf, staleSearchOf } from "./review-fixture.ts";

/** Limits of change requests: their largest number of changes, and the drafts that refused writes leave. */
const management = await openManagement();
afterAll(() => management.close());
const given = reviewsOf(management);

/** Creates a request that turns on as many flags as a request can change. */
async function largeRequest() {
  const flagIds: string[] = [];
  const review = await given.reviewed({ approvals: 1 }, async ({ call }) => {
    for (let index = 0; index < 200; index += 1)
      flagIds.push((await call("POST", "/api/v1/flags", { key: `f-${index}`, name: "F" })).id);
  });
  const { editor, approver, production } = review;
  const changes = flagIds.map((flag_id) => ({
    ...{ kind: "state", flag_id, environment_id: production.id, patch: { enabled: true } },
  }));
  const { body: request } = await editor.call("/api/v1/change-requests", {
    ...{ method: "POST", body: { title: "All", changes } },
  });
  expect((await given.approve(approver, request)).body.status).toBe("approved");
  const countOn = async () => {
    const [row] = await management.sql<[{ count: number }]>`
      select count(*)::integer as count from flag_states
      where environment_id = ${production.id} and (content -> 'enabled')::boolean`;
    return row.count;
  };
  return { ...review, request, flagIds, countOn };
}

describe("a request of 200 changes", () => {
  it("is applied as a whole", async () => {
    const { editor, request, countOn } = await largeRequest();
    const applied = await given.post(editor, request, "apply");
    expect([applied.status, applied.body.change_count]).toEqual([200, 200]);
    expect(await countOn()).toBe(200);
  });

  it("has an entry of each change in the audit log, and that of the request after them", async () => {
    const { editor, request, flagIds } = await largeRequest();
    await given.post(editor, request, "apply");
    const entries = await management.sql<{ action: string; flagId: string | null }[]>`
      select action, flag_id as "flagId" from changes
      where cause_id = ${request.id} order by sequence`;
    expect(entries.map(({ flagId }) => flagId)).toEqual([...flagIds, null]);
    expect(entries.at(-1)?.action).toBe("change_request_applied");
  });

  it("is not applied at all if one of them is stale", async () => {
    const { editor, request, flagIds, production, admin, countOn } = await largeRequest();
    const last = { flag_id: flagIds.at(-1), environment_id: production.id };
    const changes = [{ kind: "state", ...last, patch: { rollout_percentage: 1 } }];
    const { body: other } = await editor.call("/api/v1/change-requests", {
      ...{ method: "POST", body: { title: "One", changes } },
    });
    await given.post(admin, other, "bypass", { reason: "An outage" });
    const refused = await given.post(editor, request, "apply");
    expect([refused.status, refused.body.error.code]).toEqual([409, "CONFLICT_001"]);
    expect(refused.body.error.message).toContain("f-199 in production");
    expect(await countOn()).toBe(0);
  });
});

describe("the drafts of refused writes", () => {
  const draftsOf = async ({ call }: Person) => {
    const { body } = await call("/api/v1/change-requests?status=draft&limit=100");
    return body.change_requests.map(({ summary }: { summary: string }) => summary);
  };

  it("are one for a client that repeats a write", async () => {
    const { change, editor } = await given.reviewed();
    for (let time = 0; time < 30; time += 1)
      expect((await change({ rollout_percentage: 5 })).status).toBe(409);
    expect(await draftsOf(editor)).toHaveLength(1);
  });

  it("are the 20 newest of an author", async () => {
    const { change, editor, second } = await given.reviewed();
    await change({ enabled: true }, second);
    for (let percentage = 0; percentage < 25; percentage += 1)
      await change({ rollout_percentage: percentage });
    const drafts = await draftsOf(editor);
    expect(drafts).toHaveLength(21);
    expect(drafts[0]).toContain("100 % → 24 %");
    expect(drafts.at(-2)).toContain("100 % → 5 %");
    expect(drafts.at(-1)).toContain("turned on");
  });

  it("are removed seven days after the last write that made them, and requests are not", async () => {
    const { change, editor, open, project } = await given.reviewed();
    const { body: request } = await open({ rollout_percentage: 1 });
    await change({ rollout_percentage: 2 });
    const age = (interval: string) => management.sql`
      update change_requests set updated_at = now() - ${interval}::interval
      where project_id = ${project.id}`;
    await age("6 days 23:59");
    await change({ rollout_percentage: 3 });
    expect(await removeOldDrafts(management.sql, 7, 100)).toBe(0);
    await age("7 days 00:01");
    await change({ rollout_percentage: 4 });
    expect(await removeOldDrafts(management.sql, 7, 100)).toBe(2);
    expect(await draftsOf(editor)).toHaveLength(1);
    const kept = await editor.call(`/api/v1/change-requests/${request.id}`);
    expect(kept.body.status).toBe("open");
  });
});

describe("open requests", () => {
  it("are at most 50 of an author, and others can still open some", async () => {
    const { open, second } = await given.reviewed();
    for (let percentage = 0; percentage < 50; percentage += 1)
      expect((await open({ rollout_percentage: percentage })).status).toBe(201);
    const refused = await open({ rollout_percentage: 50 });
    expect([refused.status, refused.body.error.code]).toEqual([409, "CONFLICT_001"]);
    const { body: other } = await open({ rollout_percentage: 51 }, second);
    expect(other.status).toBe("open");
  });

  it("are one for a client that repeats a write while something else changes", async () => {
    const { change, editor, project } = await given.reviewed(
      { approvals: 1, without_approval: ["off"] },
      async ({ call, statePath }) => call("PATCH", statePath, { enabled: true }),
    );
    const write = async () =>
      (await change({ rollout_percentage: 5 }, editor, { prefer: "respond-async" })).body;
    const { id } = await write();
    await change({ enabled: false });
    await staleSearchOf(management)();
    const [stored] = await management.sql`
      select status from change_requests where project_id = ${project.id}`;
    expect(stored).toEqual({ status: "stale" });
    expect(await write()).toMatchObject({ id, status: "open" });
  });
});

describe("requests that have ended", () => {
  it("are removed with the audit log, and pending ones are not", async () => {
    const { open, editor, project } = await given.reviewed();
    const [{ body: ended }, { body: pending }] = [
      await open({ rollout_percentage: 1 }),
      await open({ rollout_percentage: 2 }),
    ];
    await given.post(editor, ended, "withdraw");
    const age = (interval: string) => management.sql`
      update change_requests set updated_at = now() - ${interval}::interval
      where project_id = ${project.id}`;
    await age("29 days 23:59");
    expect(await removeEndedRequests(management.sql, 30, 100)).toBe(0);
    await age("30 days 00:01");
    expect(await removeEndedRequests(management.sql, 30, 100)).toBe(1);
    const { body } = await editor.call("/api/v1/change-requests");
    expect(body.change_requests).toMatchObject([{ id: pending.id }]);
  });
});
