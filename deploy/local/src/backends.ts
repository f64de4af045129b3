import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { natsUsersConfiguration } from "@halyard/contracts";
import {
  findNatsServer,
  type LocalNats,
  type LocalPostgres,
  natsServerVersion,
  StartError,
  startLocalNats,
  startLocalPostgres,
} from "@halyard/local-backends";
import type { Settings } from "./config.ts";
import type { Credentials } from "./credentials.ts";
import type { Note } from "./steps.ts";
import { type Supervision, supervise } from "./supervise.ts";

/**
 * The URL of a PostgreSQL or NATS server, and its description. Only servers that the launcher has started are
 * supervised; they keep their ports and data.
 */
type Backend = { value: string; done: string };

/** Time after which a server in `POSTGRES_URL` or `NATS_URL` counts as unavailable. */
const ANSWER_TIMEOUT_MS = 5_000;

type Launch = Supervision & { settings: Settings };

export async function providePostgres(launch: Launch, note: Note): Promise<Backend> {
  const { settings } = launch;
  if (settings.postgresUrl !== undefined) {
    const { host } = new URL(settings.postgresUrl);
    const server = { url: settings.postgresUrl, name: "PostgreSQL", port: 5432 };
    await expectAnswer({ ...server, variable: "POSTGRES_URL" });
    return { value: settings.postgresUrl, done: `PostgreSQL at ${host} (POSTGRES_URL)` };
  }
  const dataDir = join(settings.home, "postgres");
  const start = (previous: LocalPostgres | undefined, onStep: Note) => {
    if (previous !== undefined) expectData(previous.clusterDir);
    return startLocalPostgres({ dataDir, onStep, ...(previous && { port: previous.port }) });
  };
  const server = (await supervise({ name: "PostgreSQL", start }, launch, note)).current();
  return {
    value: server.adminUrl,
    done: `PostgreSQL ${server.version} on ${server.host}:${server.port}`,
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

export async function provideNatsBinary(settings: Settings, note: Note): Promise<Backend> {
  const binary = await findNatsServer({ cacheDir: settings.cacheDir, onStep: note });
  return { value: binary, done: `nats-server: ${binary}` };
}

export async function provideNats(
  launch: Launch,
  note: Note,
  binary: string | undefined,
  passwords: Credentials["nats_passwords"],
): Promise<Backend> {
  const { settings } = launch;
  if (binary === undefined) {
    const url = settings.natsUrl ?? "";
    const first = url.replace(/,.*/, "");
    await expectAnswer({ url: first, name: "NATS", port: 4222, variable: "NATS_URL" });
    return { value: url, done: `NATS at ${addressOf(first).host} (NATS_URL)` };
  }
  const storeDir = join(settings.home, "nats");
  const users = natsUsersConfiguration({ passwordOf: (user) => JSON.stringify(passwords[user]) });
  const start = (previous: LocalNats | undefined, onStep: Note) =>
    startLocalNats({
      ...{ binary, storeDir, settings: users, onStep },
      ...(previous && { port: previous.port }),
    });
  const server = (await supervise({ name: "NATS", start }, launch, note)).current();
  const address = `${addressOf(server.url).hostname}:${server.port}`;
  const version = (await natsServerVersion(binary)) ?? "of an unknown version";
  return { value: server.url, done: `NATS ${version} on ${address}` };
}

/** Parses the address of a NATS server, whose scheme may be missing. */
function addressOf(url: string): URL {
  const address = URL.parse(url.includes("://") ? url : `nats://${url}`);
  if (address === null)
    throw new StartError(`NATS_URL must look like nats://host:4222, not "${url}".`);
  return address;
}

async function expectAnswer(server: {
  url: string;
  name: string;
  variable: string;
  port: number;
}): Promise<void> {
  const { hostname, port } = addressOf(server.url);
  const target = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || server.port) };
  const socket = connect(target);
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  } catch (cause) {
    const { name, message } = cause as Error;
    const reason = name === "AbortError" ? `nothing for ${ANSWER_TIMEOUT_MS / 1_000} s` : message;
    throw new StartError(
      `${server.name} does not answer at ${target.host}:${target.port} (${reason}). ` +
        `Start it, or unset ${server.variable} to let npm start run its own server.`,
      { cause },
    );
  } finally {
    socket.destroy();
  }
}
