import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Backend, provideNats, provideNatsBinary, providePostgres } from "./backends.ts";
import type { Settings } from "./config.ts";
import { type Credentials, loadCredentials, saveCredentials } from "./credentials.ts";
import { migrate, prepareDatabase, removeDemoKeys } from "./database.ts";
import { provideDemoData } from "./demo-data.ts";
import { writeDemoFile } from "./demo-file.ts";
import { writeExampleIds } from "./example-ids-file.ts";
import { createOperatorApi, type OperatorApi } from "./operator-api.ts";
import { awaitReady } from "./readiness.ts";
import { restartOnChange } from "./restart-on-change.ts";
import { planGateway, planServices } from "./service-plans.ts";
import type { ServicePlan } from "./service-process.ts";
import { StartError } from "./start-error.ts";
import type { Note } from "./steps.ts";
import type { Supervision } from "./supervise.ts";
import { type SupervisedService, superviseService } from "./supervised-service.ts";
import { welcome } from "./welcome.ts";

export type Launch = Supervision & { settings: Settings; removeDemoKeys: boolean };

/** Starts everything in its order; each part is handed over for stopping as soon as it runs. */
export async function bringUp(launch: Launch): Promise<void> {
  const { settings, steps } = launch;
  mkdirSync(launch.logsDir, { recursive: true, mode: 0o700 });
  const credentials = loadCredentials(settings.home);
  const operatorToken = settings.operatorToken ?? credentials.operator_token;
  const { natsUrl, databaseUrls } = await bringUpBackends(launch, credentials);
  const removal = { isDue: launch.removeDemoKeys };
  const [management, ...others] = planServices({
    settings,
    natsUrl,
    natsPasswords: credentials.nats_passwords,
    databaseUrls,
    operatorToken,
    streamTokenSecret: credentials.stream_token_secret,
    webhookSecretKey: credentials.webhook_secret_key,
    signingSeed: credentials.signing_seed,
    migrate: async (service) => {
      const { ownerUrl, runtimeUrl } = databaseUrls[service];
      await migrate(launch, { service, ownerUrl });
      // Each restart migrates again. A development that watches sources creates demo keys after its first start.
      if (service === "management" && removal.isDue) {
        await removeDemoKeys(launch, runtimeUrl);
        removal.isDue = false;
      }
    },
  });
  mkdirSync(join(settings.home, "sdk-edge"), { recursive: true, mode: 0o700 });
  // Management writes what the others wait for; these need nothing of one another.
  const services = [await bringUpService(launch, management)];
  services.push(...(await Promise.all(others.map((plan) => bringUpService(launch, plan)))));
  const upstreams = services.map((service) => [service.current().name, service.current().url]);
  const gateway = await bringUpService(
    launch,
    planGateway(settings, Object.fromEntries(upstreams)),
  );
  services.push(gateway);

  const baseUrl = gateway.current().url;
  const demo = await bringUpDemo(launch, { baseUrl, operatorToken, credentials });
  const announce = () => {
    // A restart may finish while everything is being stopped.
    if (launch.ending.hasSettled()) return;
    const running = services.map((service) => service.current());
    writeDemoFile(settings.home, { baseUrl, operatorToken, demo, services: running });
  };
  const api = createOperatorApi({ baseUrl, token: operatorToken });
  const hasFlags = demo !== undefined && (await hasDemoFlags(api, demo.project_id));
  if (launch.watch) await restartOnChange(services, launch);
  throwIfEnding(launch);
  for (const service of services) service.onRestarted(announce);
  announce();
  steps.say(welcome({ settings, baseUrl, demo, hasFlags }));
}

async function bringUpBackends(launch: Launch, credentials: Credentials) {
  const { settings } = launch;
  const binary = await step(launch, "nats-server", async (note) => {
    const found = await provideNatsBinary(settings, note);
    return {
      done: found === undefined ? "NATS_URL is given" : `nats-server is ${found}`,
      value: found,
    };
  });
  const postgres = await bringUpBackend(launch, "PostgreSQL", (note) =>
    providePostgres(launch, note),
  );
  const nats = await bringUpBackend(launch, "NATS", (note) =>
    provideNats(launch, note, binary, credentials.nats_passwords),
  );
  const databaseUrls = await step(launch, "database", async () => {
    const prepared = await prepareDatabase({ adminUrl: postgres.url, credentials });
    return { done: "database, roles and schemas", value: prepared };
  });
  return { natsUrl: nats.url, databaseUrls };
}

function bringUpBackend(
  launch: Launch,
  name: string,
  provide: (note: Note) => Promise<Backend>,
): Promise<Backend> {
  return step(launch, name, async (note) => {
    const backend = await provide(note);
    return { done: backend.label, value: backend };
  });
}

function bringUpService(launch: Launch, plan: ServicePlan): Promise<SupervisedService> {
  return step(launch, plan.name, async (note) => {
    const service = await superviseService(plan, launch, note);
    await awaitReady(service, launch.ending);
    const migrated = plan.prepare === undefined ? "" : ", migrated";
    return { done: `${plan.name} on ${service.current().url}${migrated}`, value: service };
  });
}

async function bringUpDemo(
  launch: Launch,
  access: { baseUrl: string; operatorToken: string; credentials: Credentials },
) {
  const { settings } = launch;
  if (settings.mode === "production") return undefined;
  return step(launch, "demo data", async () => {
    const api = createOperatorApi({ baseUrl: access.baseUrl, token: access.operatorToken });
    const demo = await provideDemoData(api, access.credentials.demo);
    saveCredentials(settings.home, { ...access.credentials, demo });
    writeExampleIds(settings.home, demo);
    return { done: "demo organization, project and keys", value: demo };
  });
}

/** Reads the audit log, because a read with the demo's key would count as its last use. */
async function hasDemoFlags(api: OperatorApi, projectId: string): Promise<boolean> {
  type Change = { flag_id: string | null; action: string };
  const path = `/api/v1/projects/${projectId}/changes?limit=1000`;
  const { body } = await api.get<{ changes: Change[] }>(path);
  const newest = new Map<string, string>();
  for (const { flag_id, action } of body.changes)
    if (flag_id !== null && !newest.has(flag_id)) newest.set(flag_id, action);
  return [...newest.values()].some((action) => action !== "deleted");
}

/** Between two steps is the place to notice that the run shall end. */
function step<T>(
  launch: Launch,
  name: string,
  work: (note: Note) => Promise<{ done: string; value: T }>,
): Promise<T> {
  throwIfEnding(launch);
  return launch.steps.run(name, work);
}

function throwIfEnding(launch: Launch): void {
  if (launch.ending.hasSettled()) throw new StartError("The start was interrupted.");
}
