import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Target } from "@halyard/gateway/route-table";
import { findHaproxy, StartError } from "@halyard/local-backends";
import { provideNats, provideNatsBinary, providePostgres } from "./backends.ts";
import { publicUrlOf, type Settings } from "./config.ts";
import {
  type Credentials,
  type DemoCredentials,
  loadCredentials,
  saveCredentials,
} from "./credentials.ts";
import { ensureDashboard } from "./dashboard-build.ts";
import { type DatabaseUrls, migrate, prepareDatabase, removeDemoKeys } from "./database.ts";
import {
  createOperatorApi,
  createSignInLink,
  hasDemoFlags,
  type OperatorApi,
  provideDemoData,
} from "./demo-data.ts";
import { writeDemoFile, writeDoctorFile } from "./home.ts";
import { startProxy } from "./proxy.ts";
import { natsLogin, planDashboard, planGateway, planServices } from "./service-plans.ts";
import {
  awaitReady,
  type ServicePlan,
  type ServiceProcess,
  type SupervisedService,
  startServiceProcess,
} from "./service-process.ts";
import type { Note } from "./steps.ts";
import { type Supervision, supervise } from "./supervise.ts";
import { restartOnChange } from "./watch-sources.ts";
import { welcome } from "./welcome.ts";

type Launch = Supervision & { settings: Settings; removeDemoKeys: boolean };

/** Starts everything in order. Each started part is registered for the stop immediately. */
export async function bringUp(launch: Launch): Promise<void> {
  const { settings, steps } = launch;
  mkdirSync(launch.logsDir, { recursive: true, mode: 0o700 });
  mkdirSync(join(settings.home, "sdk-edge"), { recursive: true, mode: 0o700 });
  const credentials = loadCredentials(settings.home);
  const operatorToken = settings.operatorToken ?? credentials.operator_token;
  // The build needs only the processor, so it runs beside the starts.
  const building = buildDashboard(launch);
  const services = await bringUpServices(launch, { credentials, operatorToken, building });
  const hasDashboard = (await building) !== undefined;
  const baseUrl = services.at(-1)?.current().url ?? "";
  const api = createOperatorApi({ baseUrl, token: operatorToken });
  const demo = await bringUpDemo(launch, api, credentials);
  const announce = () => {
    // A restart may finish during the stop. Writing demo.json then would leave it behind.
    if (launch.ending.hasSettled()) return;
    const running = services.map((service) => service.current());
    writeDemoFile(settings.home, { baseUrl, operatorToken, demo, services: running });
  };
  const hasFlags = demo !== undefined && (await hasDemoFlags(api, demo.project_id));
  if (launch.watch) await restartOnChange(services, launch);
  throwIfEnding(launch);
  for (const service of services) service.onRestarted(announce);
  const dashboardUrl = hasDashboard ? await linkDashboard(launch, api, demo) : undefined;
  announce();
  steps.say(welcome({ settings, baseUrl, demo, hasFlags, dashboardUrl }));
}

/**
 * Returns the address of the dashboard. With a demo, it signs in as the demo's user, unless the operator's links are
 * switched off.
 */
async function linkDashboard(
  { settings }: Launch,
  api: OperatorApi,
  demo: DemoCredentials | undefined,
): Promise<string> {
  const { SIGN_IN_BY_OPERATOR: byOperator } = settings.ofProcesses.management;
  return demo === undefined || byOperator === "off"
    ? `${publicUrlOf(settings)}/`
    : createSignInLink(api, demo);
}

type Prepared = {
  credentials: Credentials;
  operatorToken: string;
  building: Promise<string | undefined>;
};

/** Returns the services in the order of their start, with the gateway last. */
async function bringUpServices(
  launch: Launch,
  { credentials, operatorToken, building }: Prepared,
): Promise<SupervisedService[]> {
  const { settings } = launch;
  const { natsUrl, databaseUrls, doctorUrl } = await bringUpBackends(launch, credentials);
  let mustRemoveDemoKeys = launch.removeDemoKeys;
  const [management, ...others] = planServices({
    ...{ settings, natsUrl, credentials, databaseUrls, operatorToken },
    migrate: async (service) => {
      const { ownerUrl, runtimeUrl } = databaseUrls[service];
      await migrate(launch, { service, ownerUrl });
      // Restarts run this again. They must not revoke the demo keys that were created after the first start.
      if (service === "management" && mustRemoveDemoKeys) {
        await removeDemoKeys(launch, runtimeUrl);
        mustRemoveDemoKeys = false;
      }
    },
  }) as [ServicePlan, ...ServicePlan[]];
  // The others wait for what management writes, such as the snapshot. They do not depend on each other.
  const services = [await bringUpService(launch, management)];
  services.push(...(await Promise.all(others.map((plan) => bringUpService(launch, plan)))));
  services.push(await bringUpService(launch, planDashboard(settings, await building)));
  const upstreams = services.map((service) => [service.name, service.current().url]);
  const gateway = await bringUpGateway(launch, Object.fromEntries(upstreams));
  writeDoctorFile(settings.home, {
    ...{ POSTGRES_URL: doctorUrl, BASE_URL: gateway.current().url },
    ...natsLogin("doctor", { settings, natsUrl, credentials }),
  });
  return [...services, gateway];
}

/** Returns the folder of the built dashboard; undefined if it could not be built. Halyard works without it. */
async function buildDashboard(launch: Launch): Promise<string | undefined> {
  const { settings, releasers, steps } = launch;
  try {
    return await step(launch, "dashboard", async () => {
      const { folder, isNew } = await ensureDashboard({
        ...launch,
        cacheDir: settings.cacheDir,
        onStarted: ({ stop }) => void releasers.add(stop),
      });
      return { done: isNew ? "dashboard, built" : "dashboard", value: folder };
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (!launch.ending.hasSettled()) steps.say(`  Continuing without the dashboard. ${reason}`);
    return undefined;
  }
}

async function bringUpBackends(
  launch: Launch,
  credentials: Credentials,
): Promise<{ natsUrl: string; databaseUrls: DatabaseUrls; doctorUrl: string }> {
  const { settings } = launch;
  // Before any server starts, so that a missing nats-server is reported first.
  const binary =
    settings.natsUrl === undefined
      ? await step(launch, "nats-server", (note) => provideNatsBinary(settings, note))
      : undefined;
  const adminUrl = await step(launch, "PostgreSQL", (note) => providePostgres(launch, note));
  const natsUrl = await step(launch, "NATS", (note) =>
    provideNats(launch, note, binary, credentials.nats_passwords),
  );
  const prepared = await step(launch, "database", async () => {
    const value = await prepareDatabase({ adminUrl, credentials });
    return { done: "database, roles and schemas", value };
  });
  return { natsUrl, ...prepared };
}

function bringUpService(launch: Launch, plan: ServicePlan): Promise<SupervisedService> {
  const { name, prepare } = plan;
  const start = (previous?: ServiceProcess) => startServiceProcess(plan, launch, previous);
  return step(launch, name, async (note) => {
    const part = { name, prepare, start, waitsForChange: launch.watch };
    const service = await supervise(part, launch, note);
    await awaitReady(service, launch.ending);
    const migrated = prepare === undefined ? "" : ", migrated";
    return { done: `${name} on ${service.current().url}${migrated}`, value: service };
  });
}

/** Starts the built-in proxy, or HAProxy in its place. */
async function bringUpGateway(
  launch: Launch,
  upstreams: Record<Target, string>,
): Promise<SupervisedService> {
  const { settings } = launch;
  if (settings.gateway === "built-in")
    return bringUpService(launch, planGateway(settings, upstreams));
  const binary = await step(launch, "haproxy", async (onStep) => {
    const found = await findHaproxy({ cacheDir: settings.cacheDir, onStep });
    return { done: `haproxy: ${found}`, value: found };
  });
  return step(launch, "gateway", async (note) => {
    const start = (previous?: ServiceProcess) =>
      startProxy(binary, { settings, logsDir: launch.logsDir, upstreams, previous });
    const proxy = await supervise({ name: "gateway", start }, launch, note);
    return { done: `gateway (HAProxy) on ${proxy.current().url}`, value: proxy };
  });
}

async function bringUpDemo(
  launch: Launch,
  api: OperatorApi,
  credentials: Credentials,
): Promise<DemoCredentials | undefined> {
  const { home, mode } = launch.settings;
  if (mode === "production") return undefined;
  return step(launch, "demo data", async () => {
    const demo = await provideDemoData(api, credentials.demo);
    saveCredentials(home, { ...credentials, demo });
    return { done: "demo organization, project and keys", value: demo };
  });
}

/** Runs a step, unless the run is ending. */
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
