import type { Transaction } from "@halyard/postgres";
import type { CallOptions } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { applyGroupSettings } from "../../src/people/group-grants.ts";
import { createDueChanges } from "../../src/upkeep/due-changes.ts";
import { openManagement } from "../management-fixture.ts";
import { applyDueAt, type Person, reviewsOf } from "./review-fixture.ts";

/** Ways around the approval of a change, over HTTP. None of them may lead to a state that nobody approved. */
const management = await openManagement({ groupsOrganizations: "all" });
afterAll(() => management.close());
const given = reviewsOf(management);

const withExceptions = { approvals: 1, without_approval: ["off", "rollback"] };
const outcome = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [
  status,
  body?.error?.code,
];
const needsApproval = [409, "APPROVAL_001"];
const isForbidden = [403, "AUTH_002"];

type Review = Awaited<ReturnType<typeof given.reviewed>>;

/** Opens a request, and has it approved and applied. */
async function applyApproved({ open, editor, approver }: Review, patch: object) {
  const { body: request } = await open(patch);
  await given.approve(approver, request);
  const applied = await given.post(editor, request, "apply");
  expect(applied.status).toBe(200);
  return applied.body;
}

const rollBack = ({ editor, statePath }: Review) =>
  editor.call(`${statePath}/rollback`, { method: "POST" });

const byKey = (key: string) => (path: string, options: CallOptions) =>
  management.call(path, { ...options, key });

describe("the exception `off`", () => {
  async function turnedOn(more: (call: Review["byKey"]) => Promise<unknown>) {
    const review = await given.reviewed(withExceptions, async ({ call, statePath }) => {
      await call("PATCH", statePath, { enabled: true });
      await more(call);
    });
    return review.change({ enabled: false });
  }

  it("permits requirements that only turn off too, directly and through others", async () => {
    const answer = await turnedOn(async (call) => {
      const cart = { key: "cart", name: "Cart", requires: [{ flag: "checkout", is: "on" }] };
      await call("POST", "/api/v1/flags", cart);
      const gift = { key: "gift", name: "Gift", requires: [{ flag: "cart", is: "on" }] };
      await call("POST", "/api/v1/flags", gift);
    });
    expect(answer.status).toBe(200);
  });

  it("does not turn on a flag by a later rule", async () => {
    const answer = await turnedOn((call) => {
      const conditions = [{ flag: "checkout", is: "on" }];
      const targeting_rules = [{ conditions, rollout_percentage: 0 }];
      const body = { key: "old-checkout", name: "Old", targeting_rules, enabled: true };
      return call("POST", "/api/v1/flags", body);
    });
    expect(outcome(answer)).toEqual(needsApproval);
  });

  it("does not turn on a flag that requires another one to be off", async () => {
    const answer = await turnedOn(async (call) => {
      const cart = { key: "cart", name: "Cart", requires: [{ flag: "checkout", is: "on" }] };
      await call("POST", "/api/v1/flags", { ...cart, enabled: true });
      const old = { key: "old-cart", name: "Old", requires: [{ flag: "cart", is: "off" }] };
      await call("POST", "/api/v1/flags", { ...old, enabled: true });
    });
    expect(outcome(answer)).toEqual(needsApproval);
  });
});

describe("the exception `rollback`", () => {
  it("brings back no audience that was changed while the environment did not use it", async () => {
    const review = await given.reviewed(withExceptions);
    await review.byKey("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    await applyApproved(review, { targeting_rules: [{ conditions: [{ audience: "beta" }] }] });
    await applyApproved(review, { targeting_rules: [] });
    const match = [[{ attribute: "plan", operator: "equals", value: "free" }]];
    await review.byKey("PATCH", "/api/v1/audiences/beta", { match });
    expect(outcome(await rollBack(review))).toEqual(needsApproval);
  });

  it("does not restore the state of a request that needed no approval", async () => {
    const review = await given.reviewed(withExceptions);
    await review.protect({ protected: null, bypass_reason: "A migration" });
    const { body: request } = await review.open({ rollout_percentage: 7 });
    expect((await given.post(review.editor, request, "apply")).status).toBe(200);
    await review.byKey("PATCH", review.statePath, { rollout_percentage: 8 });
    await review.protect({ protected: withExceptions });
    expect(outcome(await rollBack(review))).toEqual(needsApproval);
  });

  it("does not lead to an older state than the one that stood, with clocks that differ", async () => {
    const { now } = management.clock;
    const review = await given.reviewed(withExceptions, async ({ call, statePath }) => {
      await call("PATCH", statePath, { rollout_percentage: 7 });
      management.clock.now = () => new Date(Date.now() + 10_000);
      await call("PATCH", statePath, { rollout_percentage: 8 });
      management.clock.now = now;
    });
    expect(outcome(await rollBack(review))).toEqual(needsApproval);
  });

  it("does not lead to the state of a bypass", async () => {
    const review = await given.reviewed(withExceptions);
    const { body: request } = await review.open({ rollout_percentage: 7 });
    await given.post(review.admin, request, "bypass", { reason: "An outage" });
    await applyApproved(review, { rollout_percentage: 8 });
    expect(outcome(await rollBack(review))).toEqual(needsApproval);
  });

  it("does not turn on a flag that requires this one to be off", async () => {
    const review = await given.reviewed(withExceptions, async ({ call }) => {
      const old = { key: "old-checkout", name: "Old", requires: [{ flag: "checkout", is: "off" }] };
      await call("POST", "/api/v1/flags", { ...old, enabled: true });
    });
    await applyApproved(review, { enabled: true });
    expect(outcome(await rollBack(review))).toEqual(needsApproval);
  });
});

describe("due scheduled changes", () => {
  it("turn off as an exception, and never on", async () => {
    const review = await given.reviewed(withExceptions);
    const { organizationId, project, production, flag, editor, state } = review;
    await applyApproved(review, { enabled: true });
    const changes = createDueChanges({
      ...{ writer: management.writer, now: () => new Date(), newId: uuidv7 },
    });
    const due = (action: "enable" | "disable") =>
      changes.apply({
        ...{ id: uuidv7(), schedule_id: uuidv7(), organization_id: organizationId, action },
        ...{ project_id: project.id, flag_id: flag.id, environment_id: production.id },
        ...{ user_id: editor.userId, due_at: new Date().toISOString() },
      } as never);
    expect(await due("disable")).toMatchObject({ outcome: "applied" });
    expect(await due("enable")).toMatchObject({
      outcome: "failed",
      reason: expect.stringContaining("production is protected"),
    });
    expect(await state()).toMatchObject({ enabled: false });
  });
});

describe("an approval", () => {
  it("is not that of another request with the same changes", async () => {
    const { open, approver, editor } = await given.reviewed();
    const [{ body: one }, { body: other }] = [
      await open({ enabled: true }),
      await open({ enabled: true }),
    ];
    expect(one.content_hash).not.toBe(other.content_hash);
    const replayed = { id: other.id, content_hash: one.content_hash };
    expect(outcome(await given.approve(approver, replayed))).toEqual([412, "CONFLICT_003"]);
    expect(outcome(await given.post(editor, other, "apply"))).toEqual(needsApproval);
  });

  it("is not that of the content before an edit", async () => {
    const { open, approver, editor, stateChange } = await given.reviewed();
    const { body: seen } = await open({ enabled: true });
    await given.approve(approver, seen);
    await editor.call(`/api/v1/change-requests/${seen.id}`, {
      ...{ method: "PATCH", body: { changes: [stateChange({ rollout_percentage: 1 })] } },
    });
    expect(outcome(await given.approve(approver, seen))).toEqual([412, "CONFLICT_003"]);
    expect(outcome(await given.post(editor, seen, "apply"))).toEqual(needsApproval);
  });

  it("is of one base, so that the second of two requests is stale", async () => {
    const { open, approver, editor, state } = await given.reviewed();
    const requests = [
      (await open({ rollout_percentage: 10 })).body,
      (await open({ enabled: true })).body,
    ];
    for (const request of requests) await given.approve(approver, request);
    const answers = await Promise.all(requests.map((each) => given.post(editor, each, "apply")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await state()).toMatchObject({ version: 2 });
  });

  it("does not count for a removed user, also by a group", async () => {
    const review = await given.reviewed();
    const { organizationId, project, editor, open } = review;
    const scope = { project: project.id };
    await given.grant(organizationId, {
      ...{ subject: { group: "approvers" }, role: "approver", scope },
    });
    const approver = await review.person({ role: "viewer", scope }, ["approvers"]);
    const { body: request } = await open({ enabled: true });
    expect((await given.approve(approver, request)).body.status).toBe("approved");
    const user = `/api/v1/organizations/${organizationId}/users/${approver.userId}`;
    const removed = await given.asOperator(`${user}?confirm=${approver.userId}`, {
      method: "DELETE",
    });
    expect(removed.status).toBe(204);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual(needsApproval);
  });

  it("does not count when the grant of the group is withdrawn", async () => {
    const review = await given.reviewed();
    const { organizationId, project, editor, open } = review;
    const scope = { project: project.id };
    const grant = await given.grant(organizationId, {
      ...{ subject: { group: "approvers" }, role: "approver", scope },
    });
    const approver = await review.person({ role: "viewer", scope }, ["approvers"]);
    const { body: request } = await open({ enabled: true });
    expect((await given.approve(approver, request)).body.status).toBe("approved");
    await given.withdraw(organizationId, grant.body.id);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual(needsApproval);
  });

  it("does not count when the organization no longer maps groups", async () => {
    const review = await given.reviewed();
    const { organizationId, project, editor, open } = review;
    const scope = { project: project.id };
    await given.grant(organizationId, {
      ...{ subject: { group: "approvers" }, role: "approver", scope },
    });
    const approver = await review.person({ role: "viewer", scope }, ["approvers"]);
    const { body: request } = await open({ enabled: true });
    expect((await given.approve(approver, request)).body.status).toBe("approved");
    const { sql } = management;
    const lease = {
      recordAsLeader: async (work: (tx: Transaction) => Promise<void>) => sql.begin(work),
    };
    await applyGroupSettings({ sql, lease, groupsOrganizations: [] });
    expect(outcome(await given.post(editor, request, "apply"))).toEqual(needsApproval);
  });
});

describe("a person who issued a key", () => {
  const title = "By a key";

  async function issuedKeys(review: Review) {
    const { organizationId, project, production, admin } = review;
    const { body: service } = await given.asOperator(
      `/api/v1/organizations/${organizationId}/users`,
      { method: "POST", body: { email: `${uuidv7()}@example.com`, kind: "service" } },
    );
    const keys = `/api/v1/projects/${project.id}/environments/${production.id}/keys`;
    const body = { kind: "server", name: "CI", user_id: service.id };
    const first = await admin.call(keys, { method: "POST", body });
    expect(first.status).toBe(201);
    const issued = await management.call(keys, { method: "POST", key: first.body.key, body });
    const rotated = await management.call(`${keys}/${issued.body.id}/rotate`, {
      ...{ method: "POST", key: issued.body.key },
    });
    return [first, rotated].map((answer) => byKey(answer.body.key));
  }

  it("contributes to the requests of that key, and of all keys that follow from it", async () => {
    const review = await given.reviewed();
    const { admin, approver, stateChange } = review;
    for (const [index, call] of (await issuedKeys(review)).entries()) {
      const changes = [stateChange({ rollout_percentage: index })];
      const { body: request } = await call("/api/v1/change-requests", {
        ...{ method: "POST", body: { title, changes } },
      });
      expect(request.status).toBe("open");
      expect(outcome(await given.approve(admin, request))).toEqual(isForbidden);
      expect((await given.approve(approver, request)).body.status).toBe("approved");
    }
  });
});

describe("a request that affects an environment that is not protected", () => {
  /** An editor of production alone. */
  async function guest(review: Review): Promise<Person> {
    const { project, production } = review;
    return review.person({
      ...{ role: "editor", scope: { project: project.id, environments: [production.id] } },
    });
  }

  const inStaging = ({ flag, staging }: Review) => ({
    ...{ kind: "state", flag_id: flag.id, environment_id: staging.id, patch: { enabled: true } },
  });

  it("is applied only with the right to change that environment", async () => {
    const review = await given.reviewed();
    const [author, changes] = [
      await guest(review),
      [review.stateChange({ enabled: true }), inStaging(review)],
    ];
    const body = { title: "Both", changes };
    const { body: request } = await author.call("/api/v1/change-requests", {
      ...{ method: "POST", body },
    });
    await given.approve(review.approver, request);
    expect(outcome(await given.post(author, request, "apply"))).toEqual(isForbidden);
    expect((await given.post(review.approver, request, "apply")).status).toBe(200);
  });

  it("applies itself at a time only if its author may change that environment", async () => {
    const review = await given.reviewed();
    const { staging, flag, editor } = review;
    const author = await guest(review);
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const body = { title: "Later", changes: [inStaging(review)] };
    const open = (by: Person, more: object) =>
      by.call("/api/v1/change-requests", { method: "POST", body: { ...body, ...more } });
    expect(outcome(await open(author, { apply_at }))).toEqual(isForbidden);
    const propose = await given.key(staging, { user_id: review.userId, scope: "propose" });
    const byProposal = await management.call("/api/v1/change-requests", {
      ...{ method: "POST", key: propose.key, body: { ...body, apply_at } },
    });
    expect(outcome(byProposal)).toEqual(isForbidden);
    // Neither by an edit of a request, nor by a rebase.
    const { body: request } = await open(author, {});
    const path = `/api/v1/change-requests/${request.id}`;
    const edited = await author.call(path, { method: "PATCH", body: { apply_at } });
    expect(outcome(edited)).toEqual(isForbidden);
    await applyDueAt(management, 60_001);
    const state = `/api/v1/flags/${flag.id}/environments/${staging.id}`;
    expect((await editor.call(state)).body.enabled).toBe(false);
    expect((await open(editor, { apply_at })).status).toBe(201);
    await applyDueAt(management, 60_001);
    expect((await editor.call(state)).body.enabled).toBe(true);
  });

  it("changes the values of a flag only with a role in the whole project", async () => {
    const review = await given.reviewed();
    const color = await review.byKey("POST", "/api/v1/flags", {
      ...{ key: "color", name: "Color", value_type: "string" },
      variations: [
        { key: "blue", value: "#00f" },
        { key: "red", value: "#f00" },
      ],
    });
    const variations = [
      { key: "blue", value: "#00e" },
      { key: "red", value: "#f00" },
    ];
    const changes = [{ kind: "flag_variations", flag_id: color.id, variations }];
    const author = await guest(review);
    const { body: request } = await author.call("/api/v1/change-requests", {
      ...{ method: "POST", body: { title: "Blue", changes } },
    });
    await given.approve(review.approver, request);
    expect(outcome(await given.post(author, request, "apply"))).toEqual(isForbidden);
    expect((await given.post(review.approver, request, "apply")).status).toBe(200);
  });
});

describe("a key of one environment", () => {
  it("neither reads nor opens requests of others, or of the project", async () => {
    const review = await given.reviewed();
    const { production, staging, userId, editor, stateChange, flag } = review;
    await review.byKey("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    const inProduction = await given.key(production, { user_id: userId, environment_only: true });
    const call = byKey(inProduction.key);
    const inStaging = { ...stateChange({ enabled: true }), environment_id: staging.id };
    const unused = { kind: "audience_list", audience: "beta", add: ["ada"] };
    const deletion = { kind: "flag_deletion", flag_id: flag.id };
    const both = [stateChange({ enabled: true }), inStaging];
    for (const changes of [[inStaging], [unused], [deletion], both]) {
      const options = { method: "POST", body: { title: "Elsewhere", changes } };
      expect(outcome(await call("/api/v1/change-requests", options))).toEqual(isForbidden);
      const { body: request } = await editor.call("/api/v1/change-requests", options);
      const path = `/api/v1/change-requests/${request.id}`;
      expect((await call(path, {})).status).toBe(404);
      for (const step of ["open", "rebase", "apply", "withdraw"])
        expect((await call(`${path}/${step}`, { method: "POST" })).status).toBe(404);
    }
    const listed = await call("/api/v1/change-requests", {});
    expect(listed.body.change_requests).toEqual([]);
  });
});

describe("another tenant", () => {
  it("gets 404 for each route of a request", async () => {
    const [review, foreign] = [await given.reviewed(), await given.reviewed()];
    const { body: request } = await review.open({ enabled: true });
    const path = `/api/v1/change-requests/${request.id}`;
    const { admin } = foreign;
    const post = (step: string, body?: object) =>
      admin.call(`${path}/${step}`, { method: "POST", ...(body && { body }) });
    const answers = [
      await admin.call(path),
      await admin.call(path, { method: "PATCH", body: { title: "Mine" } }),
      ...(await Promise.all(["open", "reject", "withdraw", "rebase", "apply"].map((s) => post(s)))),
      await post("approve", { content_hash: request.content_hash }),
      await post("bypass", { reason: "Mine" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404));
    const changes = [review.stateChange({ enabled: true })];
    const opened = await admin.call("/api/v1/change-requests", {
      ...{ method: "POST", body: { title: "Mine", changes } },
    });
    expect(opened.status).toBe(404);
  });
});

describe("a change of an audience", () => {
  it.each(["a change of a flag", "a rollback", "a new flag"])(
    "is awaited by %s that uses the audience for the first time",
    async (name) => {
      const targeting_rules = [{ conditions: [{ audience: "beta" }] }];
      const review = await given.reviewed({ approvals: 1 }, async ({ call, statePath }) => {
        await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
        await call("PATCH", statePath, { targeting_rules });
        await call("PATCH", statePath, { targeting_rules: [] });
      });
      await review.protect({ protected: null, bypass_reason: "Prepare the test" });
      const begin: Record<string, () => Promise<unknown>> = {
        "a change of a flag": () => review.byKey("PATCH", review.statePath, { targeting_rules }),
        "a rollback": () => review.byKey("POST", `${review.statePath}/rollback`),
        "a new flag": () =>
          review.byKey("POST", "/api/v1/flags", { key: "cart", name: "Cart", targeting_rules }),
      };
      // As a change of the audience, which reads the environments that use it under this lock.
      const [begun] = await management.sql.begin(async (tx) => {
        await tx`
          select from audiences where project_id = ${review.project.id} and key = 'beta'
          for update`;
        const sent = begin[name]?.();
        await given.waitForBlocked(1);
        return [sent];
      });
      await begun;
    },
  );
});

describe("the protection", () => {
  it("is lowered by no change that raises it too", async () => {
    const { protect } = await given.reviewed({ approvals: 2 });
    for (const lower of [{ self_approval: true }, { without_approval: ["rollback"] }])
      expect(outcome(await protect({ protected: { approvals: 3, ...lower } }))).toEqual(
        needsApproval,
      );
  });

  it("is lowered by a request with the approvals of before, and never by its author alone", async () => {
    const { protect, admin, approver, second } = await given.reviewed({ approvals: 2 });
    const answer = await protect({ protected: { approvals: 3, self_approval: true } });
    const location = answer.headers.get("location") ?? "";
    const { body: request } = await admin.call(`${location}/open`, { method: "POST" });
    expect(outcome(await given.approve(admin, request))).toEqual(isForbidden);
    await given.approve(approver, request);
    expect(outcome(await given.post(admin, request, "apply"))).toEqual(needsApproval);
    await given.approve(second, request);
    expect((await given.post(admin, request, "apply")).status).toBe(200);
  });

  it("is not read before the lock of a change of an audience", async () => {
    const review = await given.reviewed({ approvals: 1 }, async ({ call, statePath }) => {
      await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
      await call("PATCH", statePath, {
        targeting_rules: [{ conditions: [{ audience: "beta" }] }],
      });
    });
    await review.protect({ protected: null, bypass_reason: "Prepare the test" });
    const changed = await management.sql.begin(async (tx) => {
      await tx`
        update environments set protection = '{"approvals":1}', protected_at = now()
        where id = ${review.production.id}`;
      const sent = management.call("/api/v1/audiences/beta/list", {
        ...{ method: "PATCH", key: review.serverKey, body: { add: ["mallory"] } },
      });
      await given.waitForBlocked(1);
      return [sent];
    });
    expect(outcome(await (changed[0] as Promise<never>))).toEqual(needsApproval);
  });

  it("keeps its organization from being deleted without a reason", async () => {
    const { organizationId } = await given.reviewed();
    const path = `/api/v1/organizations/${organizationId}?confirm=${organizationId}`;
    const remove = (more = "") => given.asOperator(path + more, { method: "DELETE" });
    expect(outcome(await remove())).toEqual(needsApproval);
    expect((await remove("&bypass_reason=Contract%20ended")).status).toBe(204);
  });
});
