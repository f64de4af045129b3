import { type Called, type CallOptions, eventually } from "@halyard/testing";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { applyDueRequests } from "../../src/change-requests/apply-due.ts";
import { createStaleSearch } from "../../src/change-requests/mark-stale.ts";
import { type Management, operatorToken } from "../management-fixture.ts";
import { peopleOf } from "../people/people-fixture.ts";

/** A signed-in person, whose requests act in the first environment of the project. */
export type Person = {
  userId: string;
  call: (path: string, options?: CallOptions) => Promise<Called>;
};

// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape.
type CallByKey = (method: string, path: string, body?: unknown) => Promise<any>;

/** Creates projects with a protected environment, and people who review changes of it. */
export function reviewsOf(management: Management) {
  const given = peopleOf(management);

  async function person(
    { organizationId, environmentId }: { organizationId: string; environmentId: string },
    grant: object,
    groups: readonly string[] = [],
  ): Promise<Person> {
    const { id: userId } = await given.user(organizationId);
    const granted = await given.grant(organizationId, { subject: { user_id: userId }, ...grant });
    if (granted.status !== 201) throw new Error(JSON.stringify(granted.body));
    const call = await given.signIn({ organizationId, userId }, groups);
    const headers = { "halyard-environment": environmentId };
    return {
      userId,
      call: (path, options = {}) =>
        call(path, { ...options, headers: { ...headers, ...options.headers } }),
    };
  }

  /**
   * Creates a project whose first environment, production, is protected, with people of each role. `prepare` changes the
   * environment before it is protected.
   */
  async function reviewed(
    protection: object = { approvals: 1 },
    prepare: (begun: {
      call: CallByKey;
      flagId: string;
      statePath: string;
    }) => Promise<void> = () => Promise.resolve(),
  ) {
    const scope = await given.scope();
    const { organizationId, project, first: production, second: staging } = scope;
    const at = { organizationId, environmentId: production.id };
    const role = (name: string) => person(at, { role: name, scope: { project: project.id } });
    const [editor, approver, second, admin] = [
      await role("editor"),
      await role("approver"),
      await role("approver"),
      await role("admin"),
    ];
    const { body: flag } = await management.call("/api/v1/flags", {
      ...{ method: "POST", key: scope.serverKey, body: { key: "checkout", name: "Checkout" } },
    });
    const protectedPath = `/api/v1/projects/${project.id}/environments/${production.id}`;
    const protect = (body: object, by = admin) => by.call(protectedPath, { method: "PATCH", body });
    const statePath = `/api/v1/flags/${flag.id}/environments/${production.id}`;
    await prepare({ call: callBy(scope.serverKey), flagId: flag.id, statePath });
    const made = await protect({ protected: protection });
    if (made.status !== 200) throw new Error(JSON.stringify(made.body));
    const change = (patch: object, by: Person = editor, headers: Record<string, string> = {}) =>
      by.call(statePath, { method: "PATCH", body: patch, headers });
    const stateChange = (patch: object) => ({
      ...{ kind: "state", flag_id: flag.id, environment_id: production.id, patch },
    });
    const open = (patch: object, by: Person = editor, more: object = {}) =>
      by.call("/api/v1/change-requests", {
        method: "POST",
        body: { title: "A change", changes: [stateChange(patch)], ...more },
      });
    const state = async () => (await management.call(statePath, { key: scope.serverKey })).body;
    return {
      ...{ ...scope, production, staging, flag, statePath, protectedPath },
      ...{ editor, approver, second, admin, byKey: callBy(scope.serverKey) },
      person: (grant: object, groups?: readonly string[]) => person(at, grant, groups),
      ...{ protect, change, stateChange, open, state },
    };
  }

  /** Returns the function that sends requests by a key, which must succeed. */
  function callBy(key: string): CallByKey {
    return async (method, path, body) => {
      const answer = await management.call(path, { method, key, body });
      if (answer.status >= 300)
        throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
  }

  const post = (by: Person, { id }: { id: string }, step: string, body: object = {}) =>
    by.call(`/api/v1/change-requests/${id}/${step}`, {
      method: "POST",
      ...(Object.keys(body).length > 0 && { body }),
    });
  const approve = (by: Person, request: { id: string; content_hash: string }) =>
    post(by, request, "approve", { content_hash: request.content_hash });
  const asOperator = (path: string, options: CallOptions) =>
    management.call(path, { ...options, key: operatorToken });

  /** Waits until a number of statements wait for locks. */
  const waitForBlocked = (count: number) =>
    eventually(async () => {
      const [blocked] = await management.sql<[{ count: number }]>`
        select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return blocked.count === count;
    });

  /** Returns the events of a project about change requests and protections, in their order. */
  async function eventsOf(projectId: string) {
    const rows = await management.sql<{ payload: string }[]>`
      select payload from outbox
      where stream = 'events' and payload::jsonb ->> 'project_id' = ${projectId}
        and (subject like 'change\\_request.%' or subject like 'environment.%')
      order by id`;
    return rows.map(({ payload }) => JSON.parse(payload));
  }

  return { ...given, eventsOf, reviewed, post, approve, asOperator, waitForBlocked };
}

type Stores = Pick<Management, "sql" | "writer">;

const workingOn = ({ sql, writer }: Stores, laterMs = 0) => ({
  ...{ sql, writer, newId: uuidv7, now: () => new Date(Date.now() + laterMs) },
  logger: pino({ level: "silent" }),
});

/** Applies the requests that are due some time later. */
export const applyDueAt = (stores: Stores, laterMs = 0) =>
  applyDueRequests(workingOn(stores, laterMs));

/** Returns the search that marks stale requests. */
export const staleSearchOf = (stores: Stores) => createStaleSearch(workingOn(stores));
