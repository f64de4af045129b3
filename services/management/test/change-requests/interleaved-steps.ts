import type { Called } from "@halyard/testing";
import type { Witness } from "./approval-model.ts";
import { applyDueAt, type Person, type reviewsOf, staleSearchOf } from "./review-fixture.ts";

/** Random steps of people against one protected environment, and what they have seen. */
type Given = ReturnType<typeof reviewsOf>;
type Review = Awaited<ReturnType<Given["reviewed"]>>;
type Hash = { id: string; content_hash: string; status: string };

type Options = {
  given: Given;
  review: Review;
  flagIds: readonly string[];
  random: () => number;
  management: Parameters<typeof applyDueAt>[0];
};

/** Number of the newest requests that are not withdrawn. */
const maxPending = 20;

export async function createSteps({ given, review, flagIds, random, management }: Options) {
  const { editor, approver, second, admin, production, staging, organizationId, project } = review;
  const oneOf = <T>(choices: readonly T[]): T =>
    choices[Math.floor(random() * choices.length)] as T;
  const read = new Map<string, readonly object[]>();
  const approved = new Set<string>();
  const contributors = new Map<string, Set<string>>();
  const hashes: Hash[] = [];
  const statuses = new Map<string, number>();
  const grants = new Map<string, string | undefined>();
  const toggled = new Set<string>();
  const markStale = staleSearchOf(management);
  let withdrawn = 0;
  for (const { userId } of [approver, second]) grants.set(userId, await grantOf(userId));

  async function grantOf(userId: string): Promise<string> {
    const { body } = await given.asOperator(given.grantsOf(organizationId), {});
    return body.grants.find(
      ({ subject }: { subject: { user_id?: string } }) => subject.user_id === userId,
    ).id;
  }

  const patch = () =>
    oneOf([
      { rollout_percentage: Math.floor(random() * 100) },
      { enabled: random() < 0.5 },
      { enabled: true, rollout_percentage: Math.floor(random() * 100) },
      // A flag that would require itself is refused.
      { requires: [{ flag: "cart", is: "on" }] },
      { requires: [] },
    ]);
  const stateChange = (flagId: string, environmentId = production.id) => ({
    ...{ kind: "state", flag_id: flagId, environment_id: environmentId, patch: patch() },
  });
  const changes = () =>
    oneOf([
      [stateChange(oneOf(flagIds))],
      flagIds.map((id) => stateChange(id)),
      [stateChange(oneOf(flagIds)), stateChange(oneOf(flagIds), staging.id)],
      [{ kind: "audience", audience: "beta", patch: { match: match() } }],
      [{ kind: "protection", environment_id: production.id, protected: protection() }],
    ]);
  const protection = () => ({
    ...{ approvals: oneOf([1, 2]), self_approval: random() < 0.3 },
    without_approval: oneOf([[], ["off"], ["rollback"], ["off", "rollback"]]),
  });
  const match = () => [[{ attribute: "plan", operator: "equals", value: `plan ${random()}` }]];
  const statePath = () => `/api/v1/flags/${oneOf(flagIds)}/environments/${production.id}`;
  /** Returns one of the last requests, more often one that had a status when it was read. */
  const request = (status = "open") => {
    const likely = hashes.filter((hash) => hash.status === status).slice(-2);
    return oneOf(likely.length > 0 && random() < 0.7 ? likely : hashes.slice(-5));
  };

  function note({ status, body }: Called, by?: Person): void {
    if (status >= 300 || body?.content_hash === undefined) return;
    const { id, content_hash, status: now } = body;
    read.set(content_hash, body.changes);
    hashes.push({ id, content_hash, status: now });
    if (by !== undefined)
      contributors.set(id, new Set([...(contributors.get(id) ?? []), by.userId]));
  }

  async function contribute(by: Person, path: string, method: string, body?: object) {
    const answer = await by.call(path, { method, ...(body && { body }) });
    note(answer, by);
    return answer;
  }

  /** Otherwise old requests would reach their maximum number, and no step could open another one. */
  async function withdrawOldest(): Promise<void> {
    const ids = [...new Set(hashes.map(({ id }) => id))];
    for (const id of ids.slice(withdrawn, -maxPending)) await given.post(admin, { id }, "withdraw");
    withdrawn = Math.max(withdrawn, ids.length - maxPending);
  }

  const pathOf = ({ id }: { id: string }) => `/api/v1/change-requests/${id}`;
  const author = () => oneOf([editor, editor, second, admin]);

  const onRequest = (run: (hash: Hash) => Promise<Called>, status?: string) => async () => {
    const hash = request(status);
    return hash === undefined ? undefined : run(hash);
  };

  const toggleRole = () => changeRole(oneOf([approver, second]));

  /** Grants a role again that a step has withdrawn. */
  async function restoreRole(): Promise<Called | undefined> {
    const person = [approver, second].find(({ userId }) => grants.get(userId) === undefined);
    return person && changeRole(person);
  }

  async function changeRole({ userId }: Person): Promise<Called | undefined> {
    if (toggled.has(userId)) return undefined;
    toggled.add(userId);
    const held = grants.get(userId);
    grants.set(userId, undefined);
    if (held !== undefined) return given.withdraw(organizationId, held);
    const subject = { user_id: userId };
    const answer = await given.grant(organizationId, {
      ...{ subject, role: "approver", scope: { project: project.id } },
    });
    grants.set(userId, answer.body.id);
    return answer;
  }

  const steps: Record<string, () => Promise<Called | undefined>> = {
    write: () => editor.call(statePath(), { method: "PATCH", body: patch() }),
    kill: () => editor.call(statePath(), { method: "PATCH", body: { enabled: false } }),
    rollBack: () => editor.call(`${statePath()}/rollback`, { method: "POST" }),
    widen: () =>
      editor.call("/api/v1/audiences/beta", { method: "PATCH", body: { match: match() } }),
    open: async () => {
      await withdrawOldest();
      const apply_at = new Date(Date.now() + 50).toISOString();
      const timed = random() < 0.2 ? { apply_at } : {};
      const body = { title: "A change", changes: changes(), ...timed };
      return contribute(author(), "/api/v1/change-requests", "POST", body);
    },
    edit: onRequest((hash) => contribute(author(), pathOf(hash), "PATCH", { changes: changes() })),
    rebase: onRequest((hash) => contribute(editor, `${pathOf(hash)}/rebase`, "POST")),
    read: onRequest(async (hash) => {
      const answer = await approver.call(pathOf(hash));
      note(answer);
      return answer;
    }),
    approve: onRequest(async (hash) => {
      const by = oneOf([approver, second]);
      const answer = await given.approve(by, hash);
      if (answer.status === 200) approved.add(`${hash.id} ${by.userId} ${hash.content_hash}`);
      note(answer);
      return answer;
    }),
    apply: onRequest(
      (hash) => given.post(oneOf([editor, approver, second]), hash, "apply"),
      "approved",
    ),
    bypass: onRequest((hash) => given.post(admin, hash, "bypass", { reason: "A drill" })),
    reject: onRequest((hash) => given.post(approver, hash, "reject")),
    withdraw: onRequest((hash) => given.post(editor, hash, "withdraw")),
    due: async () => void (await applyDueAt(management)),
    mark: async () => void (await markStale()),
    protect: () => review.protect({ protected: protection() }),
    unprotect: () => review.protect({ protected: null, bypass_reason: "A drill" }),
    toggleRole,
    restoreRole,
  };
  const often = [
    "open",
    "open",
    "read",
    "approve",
    "approve",
    "approve",
    "apply",
    "apply",
    "apply",
  ];
  const usual = [
    "write",
    "kill",
    "edit",
    "rebase",
    "rollBack",
    "due",
    "mark",
    "protect",
    "widen",
    "restoreRole",
  ];
  const rare = ["bypass", "reject", "withdraw", "unprotect", "toggleRole"];

  async function take(): Promise<void> {
    const chosen = random();
    const name = oneOf(chosen < 0.6 ? often : chosen < 0.9 ? usual : rare);
    const answer = await steps[name]?.();
    const key = `${name} ${answer?.status ?? "nothing"}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
  }

  /** Takes steps at once. Returns what was seen until they ended. */
  async function takeAtOnce(count: number): Promise<Witness> {
    const before = [...grants].filter(([, held]) => held === undefined).map(([userId]) => userId);
    toggled.clear();
    await Promise.all(Array.from({ length: count }, take));
    const without = new Set(before.filter((userId) => !toggled.has(userId)));
    return { read, approved, contributors, without };
  }

  return { takeAtOnce, statuses };
}
