import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Principal } from "../../src/access/principal.ts";
import {
  decideIssue,
  decideRevoke,
  decideRotate,
  type KeyDecision,
} from "../../src/keys/decide-key.ts";
import { checkMayHandle, type Key } from "../../src/keys/key.ts";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/**
 * A step of a property test: no sequence of requests gives a key more rights or a later expiry than its issuer has.
 * A step selects existing keys by number, in the order of their creation.
 */
type Step = {
  action: "issue" | "rotate" | "revoke" | "revoke issued";
  /** The calling key. */
  by: number;
  /** The key that is rotated or revoked. */
  on: number;
  kind: "client" | "reader" | "server";
  environmentOnly: boolean;
  /** Index of the environment of an issued key. */
  environment: 0 | 1;
  /** Seconds until the requested expiry, or until the end of the overlap. */
  seconds: number | null;
  /** Seconds that pass before the step. */
  pause: number;
};

const anySteps = (maxLength: number) =>
  fc.array(
    fc.record<Step>({
      action: fc.constantFrom(
        "issue",
        "issue",
        "issue",
        "rotate",
        "rotate",
        "revoke",
        "revoke issued",
      ),
      by: fc.nat(7),
      on: fc.nat(7),
      kind: fc.constantFrom("server", "server", "reader", "client"),
      environmentOnly: fc.boolean(),
      environment: fc.constantFrom(0, 1),
      seconds: fc.option(fc.integer({ min: 0, max: 5_000 })),
      pause: fc.nat(900),
    }),
    { minLength: 1, maxLength },
  );

/** The properties of a key that determine its rights and its lifetime. */
type Rights = {
  id: string;
  kind: string;
  userId: string;
  environmentId: string;
  environmentOnly: boolean;
  expiresAtMs: number;
};

function complaintsAbout(child: Rights, parent: Rights): string[] {
  return [
    parent.kind !== "server" && "a client key issued it",
    child.userId !== parent.userId && "it has another user",
    child.expiresAtMs > parent.expiresAtMs && "it lives longer",
    parent.environmentOnly && !child.environmentOnly && "it lost the restriction",
    parent.environmentOnly &&
      child.environmentId !== parent.environmentId &&
      "it is in another environment",
  ].filter((complaint) => complaint !== false);
}

const ada = "01890000-0000-7000-8000-0000000000aa";
const startMs = Date.UTC(2027, 0, 31);
const inProject = { organizationId: "organization", projectId: "project" };

/** Creates an in-memory store that applies decisions and has its own clock. */
function keysInMemory(roots: readonly Partial<Key>[]) {
  let nowMs = startMs;
  let counter = 0;
  const keys: Key[] = roots.map((root) => ({
    ...inProject,
    id: `key-${counter++}`,
    secretSha256: "",
    kind: "server",
    name: "A key",
    environmentId: "environment-0",
    userId: ada,
    environmentOnly: false,
    scope: "write",
    version: 1,
    createdAt: new Date(nowMs),
    expiresAt: null,
    revokedAt: null,
    issuedBy: null,
    issuers: [],
    successorOf: null,
    ...root,
  }));

  const works = (key: Key) =>
    key.revokedAt === null && (key.expiresAt === null || key.expiresAt.getTime() > nowMs);

  function decide(step: Step, issuer: Key, target: Key): KeyDecision | object {
    const context = {
      actor: { id: ada, email: "ada@example.com" },
      apiKeyId: null,
      via: "operator" as const,
      cause: "manual" as const,
      now: new Date(nowMs),
      newId: () => "id",
      ...{ issuer, issuers: [], liveKeyCount: 0 },
    };
    const material = { id: `key-${counter++}`, key: "", secretSha256: "" };
    const environmentId = `environment-${step.environment}`;
    const { kind, environmentOnly, seconds } = step;
    const subject =
      step.action === "issue" ? { environmentId, userId: ada, environmentOnly } : target;
    const problem = checkMayHandle(principalOf(issuer), subject);
    if (problem !== undefined) return problem;
    if (step.action === "rotate") return decideRotate(target, seconds ?? 0, material, context);
    if (step.action !== "issue") return decideRevoke([target], context);
    const expires_at = seconds === null ? null : new Date(nowMs + seconds * 1000).toISOString();
    const request = { kind, name: "A key", expires_at, environment_only: environmentOnly };
    const owned = { ...inProject, environmentId, userId: ada };
    return decideIssue(owned, request, material, context);
  }

  return {
    keys,
    /** Makes a step. Returns the new key, if any, and its issuer in the state before the step. */
    make(step: Step): { child: Key; issuer: Key } | undefined {
      nowMs += step.pause * 1000;
      const issuer = keys[step.by % keys.length] as Key;
      const target = keys[step.on % keys.length] as Key;
      if (!works(issuer) || issuer.kind !== "server") return undefined;
      const decision = decide(step, issuer, target);
      if (!("changed" in decision)) return undefined;
      for (const changed of decision.changed)
        keys[keys.findIndex(({ id }) => id === changed.id)] = changed;
      if (decision.issued === undefined) return undefined;
      keys.push(decision.issued);
      return { child: decision.issued, issuer };
    },
  };
}

function principalOf(key: Key): Principal {
  const expiresAtMs = key.expiresAt?.getTime();
  const role = () => "admin" as const;
  const rights = { at: role, within: role, anywhere: role };
  return { kind: "key", key: { ...key, scope: "write", via: "key", rights, expiresAtMs } };
}

const rightsOf = (key: Key): Rights => ({
  ...key,
  expiresAtMs: key.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
});

describe("given any sequence of requests with keys", () => {
  it("gives no key more rights than its issuer or the first issuer", () => {
    const roots = [
      {},
      { expiresAt: new Date(startMs + 3_600_000) },
      { environmentOnly: true, expiresAt: new Date(startMs + 1_800_000) },
    ];
    let issuedCount = 0;
    fc.assert(
      fc.property(anySteps(24), (steps) => {
        const store = keysInMemory(roots);
        const rootOf = new Map(store.keys.map((key) => [key.id, rightsOf(key)]));
        for (const step of steps) {
          const made = store.make(step);
          if (made === undefined) continue;
          issuedCount += 1;
          const root = rootOf.get(made.issuer.id) as Rights;
          rootOf.set(made.child.id, root);
          expect(complaintsAbout(rightsOf(made.child), rightsOf(made.issuer))).toEqual([]);
          expect(complaintsAbout(rightsOf(made.child), root)).toEqual([]);
        }
      }),
      { numRuns: 1_000 },
    );
    expect(issuedCount).toBeGreaterThan(1_000);
  });
});

type Issued = {
  id: string;
  key: string;
  kind: string;
  user_id: string;
  environment_id: string;
  environment_only: boolean;
  issued_by: string | null;
  expires_at: string | null;
  revoked_at: string | null;
};

const rightsOfIssued = (key: Issued): Rights => ({
  id: key.id,
  kind: key.kind,
  userId: key.user_id,
  environmentId: key.environment_id,
  environmentOnly: key.environment_only,
  expiresAtMs: key.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(key.expires_at),
});

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

describe("given any sequence of requests with keys over HTTP", () => {
  /** Creates a project with keys. Returns the keys and functions for the requests that keys can make. */
  async function openProject() {
    const { first, second, userId } = await given.scope();
    const environments = [first, second];
    const keysAt = (environmentId: string) =>
      `/api/v1/projects/${first.project_id}/environments/${environmentId}/keys`;
    const made: Issued[] = [];
    /** For each key, the keys that it issued and the key that replaced it. */
    const linked = new Map<string, { id: string; isIssued: boolean }[]>();

    async function keep(issued: Issued, by: Issued | undefined, old: Issued | undefined) {
      await eventually(() => management.directory.versionOf(issued.id) !== undefined);
      made.push(issued);
      if (old !== undefined) link(old.id, { id: issued.id, isIssued: false });
      if (by !== undefined) link(by.id, { id: issued.id, isIssued: true });
    }

    function link(from: string, to: { id: string; isIssued: boolean }) {
      linked.set(from, [...(linked.get(from) ?? []), to]);
    }

    for (const body of [
      {},
      { expires_at: new Date(Date.now() + 3_600_000).toISOString() },
      { environment_only: true },
    ])
      await keep(
        (await given.key(first, { user_id: userId, ...body })) as Issued,
        undefined,
        undefined,
      );

    /** The keys that a revocation with `issued=true` ends. */
    function issuedFrom(id: string, isIssued = false): string[] {
      return (linked.get(id) ?? []).flatMap((to) => {
        const counts = isIssued || to.isIssued;
        return [...(counts ? [to.id] : []), ...issuedFrom(to.id, counts)];
      });
    }

    async function recordOf(key: Issued): Promise<Issued> {
      const path = `${keysAt(key.environment_id)}/${key.id}`;
      return (await management.call(path, { key: operatorToken })).body;
    }

    async function request(step: Step, by: Issued, on: Issued) {
      const path = `${keysAt(on.environment_id)}/${on.id}`;
      const { seconds } = step;
      if (step.action === "rotate") {
        const body = { overlap_seconds: seconds ?? 0 };
        return management.call(`${path}/rotate`, { method: "POST", key: by.key, body });
      }
      if (step.action !== "issue") {
        const query = step.action === "revoke" ? "" : "?issued=true";
        return management.call(path + query, { method: "DELETE", key: by.key });
      }
      const environmentId = environments[step.environment]?.id as string;
      const body = {
        kind: step.kind,
        name: "A key",
        user_id: userId,
        environment_only: step.environmentOnly,
        expires_at: seconds && new Date(Date.now() + (seconds + 60) * 1000).toISOString(),
      };
      return management.call(keysAt(environmentId), { method: "POST", key: by.key, body });
    }

    /** Expects that all issued keys are revoked. Returns their number. */
    async function expectRevoked(key: Issued): Promise<number> {
      const issued = new Set(issuedFrom(key.id));
      for (const each of made.filter(({ id }) => issued.has(id)))
        expect((await recordOf(each)).revoked_at).not.toBeNull();
      return issued.size;
    }

    async function revokeAsOperator(key: Issued): Promise<number> {
      const path = `${keysAt(key.environment_id)}/${key.id}?issued=true`;
      await management.call(path, { method: "DELETE", key: operatorToken });
      return expectRevoked(key);
    }

    return { made, keep, recordOf, request, expectRevoked, revokeAsOperator };
  }

  it("issues no key with more rights than its issuer, and revokes all issued keys", async () => {
    let issuedCount = 0;
    let revokedCount = 0;
    await fc.assert(
      fc.asyncProperty(anySteps(10), async (steps) => {
        const project = await openProject();
        for (const step of steps) {
          const by = project.made[step.by % project.made.length] as Issued;
          const on = project.made[step.on % project.made.length] as Issued;
          const issuer = await project.recordOf(by);
          const answer = await project.request(step, by, on);
          if (answer.status === 201) {
            issuedCount += 1;
            expect(answer.body.issued_by).toBe(by.id);
            expect(complaintsAbout(rightsOfIssued(answer.body), rightsOfIssued(issuer))).toEqual(
              [],
            );
            await project.keep(answer.body, by, step.action === "rotate" ? on : undefined);
          }
          if (answer.status === 204 && step.action === "revoke issued")
            await project.expectRevoked(on);
        }
        for (const root of project.made.slice(0, 3))
          revokedCount += await project.revokeAsOperator(root);
      }),
      { numRuns: 12, endOnFailure: true },
    );
    expect(issuedCount).toBeGreaterThan(0);
    expect(revokedCount).toBeGreaterThan(0);
  });
});
