import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { natsUsersConfiguration } from "@halyard/contracts";
import {
  findNatsServer,
  type LocalNats,
  type LocalPostgres,
  StartError,
  startLocalNats,
  startLocalPostgres,
} from "@halyard/local-backends";
import type { Settings } from "./config.ts";
import type { Credentials } from "./credentials.ts";
import type { Note } from "./steps.ts";
import { type Supervision, supervise } from "./supervise.ts";

/**
 * A PostgreSQL or NATS server. Only servers that the launcher has started are supervised; they keep their ports and
 * data.
 */
export type Backend = { url: string; label: string };

/** Time after which a server in `POSTGRES_URL` or `NATS_URL` counts as unavailable. */
const ANSWER_TIMEOUT_MS = 5_000;

type Launch = Supervision & { settings: Settings };

export async function providePostgres(launch: Launch, note: Note): Promise<Backend> {
  const { settings, reaper } = launch;
  if (settings.postgresUrl !== undefined) {
    const { host } = new URL(settings.postgresUrl);
    await expectAnswer({ url: settings.postgresUrl, name: "PostgreSQL", variable: "POSTGRES_URL" });
    return { url: settings.postgresUrl, label: `PostgreSQL at ${host} (POSTGRES_URL)` };
  }
  const dataDir = join(settings.home, "postgres");
  const start = (previous: LocalPostgres | undefined, onStep: Note) => {
    if (previous !== undefined) expectData(previous.clusterDir);
    return startLocalPostgres({
      dataDir,
      reaper,
      onStep,
      ...(previous && { port: previous.port }),
    });
  };
  const server = (await supervise({ name: "PostgreSQL", start }, launch, note)).current();
  return {
    url: server.adminUrl,
    label: `PostgreSQL ${server.version} on ${server.host}:${server.port}`,
  };
}

/** Prevents a restart with an empty database after the data were deleted during the run. */
function expectData(clusterDir: string): void {
  if (!existsSync(clusterDir)) {
    throw new StartError(
      `PostgreSQL's data in ${clusterDir} are missing. Restore them, or run npm start to begin with an empty database.`,
    );
  }
}

/** Runs before any server starts, so that a missing nats-server is reported first. */
export async function provideNatsBinary(
  settings: Settings,
  note: Note,
): Promise<string | undefined> {
  if (settings.natsUrl !== undefined) return undefined;
  return findNatsServer({ cacheDir: settings.cacheDir, onStep: note });
}

export async function provideNats(
  launch: Launch,
  note: Note,
  binary: string | undefined,
  passwords: Credentials["nats_passwords"],
): Promise<Backend> {
  const { settings, reaper } = launch;
  if (binary === undefined) {
    const url = settings.natsUrl ?? "";
    const servers = url.split(",").map((server) => server.trim());
    const first = servers[0] ?? "";
    await expectAnswer({ url: first, name: "NATS", variable: "NATS_URL" });
    return { url, label: `NATS at ${addressOf(first).host} (NATS_URL)` };
  }
  const storeDir = join(settings.home, "nats");
  const users = natsUsersConfiguration({ passwordOf: (user) => JSON.stringify(passwords[user]) });
  const start = (previous: LocalNats | undefined, onStep: Note) =>
    startLocalNats({
      ...{ binary, storeDir, settings: users, reaper, onStep },
      ...(previous && { port: previous.port }),
    });
  const server = (await supervise({ name: "NATS", start }, launch, note)).current();
  const address = `${addressOf(server.url).hostname}:${server.port}`;
  return { url: server.url, label: `NATS ${server.version} on ${address}` };
}

/** Parses the address of a NATS server, whose scheme may be missing. */
function addressOf(url: string): URL {
  const address = URL.parse(url.includes("://") ? url : `nats://${url}`);
  if (address === null)
    throw new StartError(`NATS_URL must look like nats://host:4222, not "${url}".`);
  return address;
}

const DEFAULT_PORTS: Record<string, number> = { PostgreSQL: 5432, NATS: 4222 };

async function expectAnswer(server: {
  url: string;
  name: string;
  variable: string;
}): Promise<void> {
  const { hostname, port } = addressOf(server.url);
  const target = {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || DEFAULT_PORTS[server.name]),
  };
  const problem = await new Promise<Error | undefined>((resolve) => {
    const socket = connect(target, () => resolve(undefined));
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => resolve(new Error("no answer")));
    socket.on("error", resolve);
    socket.on("close", () => resolve(undefined));
    socket.once("connect", () => socket.destroy());
  });
  if (problem === undefined) return;
  throw new StartError(
    `${server.name} does not answer at ${target.host}:${target.port} (${problem.message}). ` +
      `Start it, or unset ${server.variable} to let npm start run its own server.`,
    { cause: problem },
  );
}
