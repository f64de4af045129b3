import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeyLimits, createLastUsed } from "@halyard/api-keys";
import { type ConfiguredLimits, defaultPlans, type KeyEntry } from "@halyard/contracts";
import { createCallers, createPeopleDirectory, createPlaces } from "@halyard/people";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  type CallOptions,
  call,
  createTestDatabase,
  eventually,
  natsLogin,
  once,
  startTestNats,
  type TestDatabase,
  type TestNats,
  tenantInSnapshot,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
  testSigner,
} from "@halyard/testing";
import { type Logger, pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createManagementApp } from "../src/app.ts";
import { startRemovingLists } from "../src/audiences/remove-lists.ts";
import { startFilling } from "../src/flags/environment-fills.ts";
import { type Key, keyEntry } from "../src/keys/key.ts";
import { createKeyLookup } from "../src/keys/key-lookup.ts";
import { insertKey } from "../src/keys/key-store.ts";
import { insertUser } from "../src/keys/user-store.ts";
import { entryToPublish } from "../src/outbox/outbox-message.ts";
import { createWriter } from "../src/outbox/write.ts";
import { createPeopleLookup } from "../src/people/people-lookup.ts";
import { createChangeStreams } from "../src/publishing/change-streams.ts";
import type { SignInSettings } from "../src/sign-in/settings.ts";
import { environmentEntry } from "../src/tenancy/environment.ts";
import { insertEnvironments } from "../src/tenancy/environment-store.ts";
import { organizationEntry } from "../src/tenancy/organization.ts";
import { insertOrganization } from "../src/tenancy/organization-store.ts";
import { preparePlans } from "../src/tenancy/plans.ts";
import { projectEntry } from "../src/tenancy/project.ts";
import { insertProject } from "../src/tenancy/project-store.ts";
import { startRemoving } from "../src/upkeep/remove-deleted.ts";
import { startWorkers } from "../src/workers.ts";

/** The address at which people open this installation. */
export const publicUrl = "http://localhost:8080";

/** Settings of signing in, so that all routes of people exist. The port is that of the opened service. */
export const signInSettings = (): SignInSettings => ({
  publicUrl: new URL("http://127.0.0.1"),
  oidc: undefined,
  passkeys: true,
  byOperator: true,
});

export const operatorToken = "an operator token for the tests only";

/** The database and the NATS server. Management can be opened over the same backends after it was stopped. */
type Backends = { database: TestDatabase; nats: TestNats };

/**
 * Opens management in this process, composed as in `main.ts`, over the test file's own database and NATS server.
 * The test can set its clock.
 */
export async function openManagement(
  options: {
    over?: Backends;
    plans?: Record<string, ConfiguredLimits>;
    /** False: organizations may have plans that are not configured. */
    checksPlans?: boolean;
    keyRate?: { requestsPerSecond: number; burst: number };
    logger?: Logger;
    /** False: the test fills new environments itself, batch by batch. */
    fillsEnvironments?: boolean;
    /** False: the test removes the rows of deleted resources itself, batch by batch. */
    removesDeleted?: boolean;
    flagEventsMaxBytes?: number;
    /** Organizations that map groups. */
    groupsOrganizations?: readonly string[] | "all";
    /** True: streams of changes get no hints, as if all notifications were lost. */
    losesHints?: boolean;
    /** People can sign in. The fixture sets the port of the public URL. */
    signIn?: SignInSettings;
    trustedProxies?: string[];
  } = {},
) {
  const backends = options.over ?? (await openBackends());
  const { database, nats } = backends;
  const { plans = defaultPlans, groupsOrganizations = [] } = options;
  const logger = options.logger ?? pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({
    url: database.runtimeUrls.management,
    name: "test",
    maxConnections: 10,
    logger,
  });
  const metrics = createMetrics({ service: "management" });
  const signatures = testSignatures();
  const directory = createKeyDirectory(signatures);
  const people = createPeopleDirectory();
  const places = createPlaces();
  const lastUsed = createLastUsed();
  const clock = { now: () => new Date(), monotonicMs: () => performance.now() };
  const changeStreams = createChangeStreams({
    sql,
    now: () => clock.now(),
    // Only streams of changes use this clock. The lease of the relay would expire with it.
    monotonicMs: () => clock.monotonicMs(),
    metrics,
    logger,
  });
  if (options.checksPlans !== false)
    await preparePlans(sql, { plans, now: () => clock.now(), newId: uuidv7, logger });
  const workers = startWorkers({
    onWritten: options.losesHints ? () => undefined : changeStreams.wake,
    nats: natsLogin("management", nats.url),
    replicas: 1,
    ...(options.flagEventsMaxBytes && { flagEventsMaxBytes: options.flagEventsMaxBytes }),
    holder: randomUUID(),
    sql,
    directory,
    ...{ people, places },
    signer: testSigner,
    signatures,
    sign: testMessageSigner("management"),
    verify: testMessageVerifier,
    lastUsed,
    plans,
    groupsOrganizations,
    now: () => clock.now(),
    newId: uuidv7,
    metrics,
    logger,
  });
  const writer = createWriter({
    sql,
    newId: uuidv7,
    wakeRelay: workers.wakeRelay,
    effects: workers.effects,
    awaitPeople: workers.awaitPeople,
  });
  const filling =
    options.fillsEnvironments === false
      ? undefined
      : startFilling({ sql, writer, now: () => clock.now(), newId: uuidv7, logger });
  const removing =
    options.removesDeleted === false
      ? undefined
      : startRemoving({ sql, writer, now: () => clock.now(), logger });
  const removingLists = startRemovingLists({ sql, writer, logger });
  const keyLimits = createKeyLimits(options.keyRate ?? manyRequests);
  const peopleLookup = createPeopleLookup({
    ...{ sql, people, places, limits: keyLimits, groupsOrganizations },
    peopleAreCurrent: workers.peopleAreCurrent,
    placesAreCurrent: workers.directoryIsCurrent,
  });
  const callers = createCallers({
    people: peopleLookup,
    publicUrl: options.signIn?.publicUrl ?? new URL(publicUrl),
    nowMs: () => clock.now().getTime(),
  });
  const app = createManagementApp({
    sql,
    writer,
    changeStreams,
    findKey: createKeyLookup({ sql, directory, directoryIsCurrent: workers.directoryIsCurrent }),
    callers,
    readStatus: workers.readStatus,
    groupsOrganizations,
    operatorToken,
    signInByKey: true,
    keyLimits,
    lastUsed,
    now: () => clock.now(),
    newId: uuidv7,
    signIn: options.signIn && { settings: options.signIn, people: peopleLookup },
    trustedProxies: options.trustedProxies ?? [],
    checkAnswers: true,
    allowDemoUser: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  // No route reads the URL before the first request.
  if (options.signIn) options.signIn.publicUrl.port = new URL(url).port;
  await eventually(() => workers.directoryIsCurrent() && workers.peopleAreCurrent(), {
    because: "management follows keys and people",
  });
  const stop = once(async () => {
    await changeStreams.drain();
    await app.close();
    await changeStreams.stop();
    await filling?.stop();
    await removing?.stop();
    await removingLists.stop();
    await workers.stop();
    await sql.end();
  });
  return {
    url,
    backends,
    natsUrl: nats.url,
    adminUrl: database.adminUrl,
    sql,
    writer,
    clock,
    directory,
    people,
    peopleAreCurrent: workers.peopleAreCurrent,
    findSession: (cookie: string) => callers.findSession({ headers: { cookie }, ip: "127.0.0.1" }),
    metrics,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    /** Stops management but not its backends. */
    stop,
    close: async () => {
      await stop();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

/** More than any test sends. */
const manyRequests = { requestsPerSecond: 1_000_000, burst: 1_000_000 };

async function openBackends(): Promise<Backends> {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  return { database, nats };
}

export type Management = Awaited<ReturnType<typeof openManagement>>;

/**
 * Writes a project with two environments, a user and three keys. As in production, one transaction writes the rows
 * and the outbox. Entries that exist only in the key directory would disappear with the next full read.
 */
export async function seedProject({ writer, directory }: Management) {
  const { keyEntries, ...tenant } = tenantInSnapshot();
  const { organizationId, projectId, userId, environmentId, otherEnvironmentId } = tenant;
  const createdAt = new Date();
  const version = 1;
  const organization = {
    id: organizationId,
    name: "Acme",
    plan: "pro",
    version,
    createdAt,
  };
  const dates = { createdAt, updatedAt: createdAt };
  const open = { protection: null, protectedAt: null };
  const project = { id: projectId, organizationId, name: "Web", version, ...dates };
  const environments = [
    { id: environmentId, projectId, name: "production", caution: true, version, ...dates, ...open },
    {
      id: otherEnvironmentId,
      projectId,
      name: "staging",
      caution: false,
      version,
      ...dates,
      ...open,
    },
  ];
  const user = {
    id: userId,
    organizationId,
    kind: "person",
    email: "ada@example.com",
    name: "Ada",
    personId: null,
    createdAt,
  } as const;
  const keys = keyEntries.map(({ value }) => seededKey(value, createdAt));
  await writer(async ({ tx, publish }) => {
    await insertOrganization(tx, { ...organization, updatedAt: createdAt });
    await insertUser(tx, user);
    await insertProject(tx, project);
    await insertEnvironments(tx, environments);
    for (const key of keys) await insertKey(tx, key);
    const counted = { ...organization, updatedAt: createdAt, projectCount: 1 };
    publish([
      entryToPublish(organizationEntry(counted)),
      entryToPublish(projectEntry(project)),
      ...environments.map((added) =>
        entryToPublish(environmentEntry({ ...added, organizationId })),
      ),
      ...keys.map((key) => entryToPublish(keyEntry({ ...key, committedAt: createdAt }))),
    ]);
    return tenant;
  });
  await eventually(() => keys.every(({ id }) => directory.versionOf(id) !== undefined), {
    because: "the key directory contains the seeded keys",
  });
  return tenant;
}

function seededKey(entry: KeyEntry, createdAt: Date): Key {
  return {
    id: entry.key_id,
    secretSha256: entry.secret_sha256,
    kind: entry.key_kind,
    name: "seeded",
    organizationId: entry.organization_id,
    projectId: entry.project_id,
    environmentId: entry.environment_id,
    userId: entry.user_id,
    environmentOnly: entry.environment_only,
    scope: entry.scope ?? "write",
    version: entry.version,
    createdAt,
    expiresAt: null,
    revokedAt: null,
    issuedBy: null,
    issuers: [],
    successorOf: null,
  };
}
