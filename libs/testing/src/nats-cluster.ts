import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort, type LocalNats, startLocalNats } from "@halyard/local-backends";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { natsTestUsers } from "./nats-login.ts";
import { removeTemporary } from "./releases.ts";
import type { RestartableNats } from "./test-nats.ts";

/** One server of a cluster. It keeps its address across restarts. */
export type ClusterNode = Pick<RestartableNats, "kill" | "start" | "signal" | "url"> & {
  name: string;
  /** Deletes the files of a server that was killed, as on a new machine. */
  forget(): void;
};

/** Three servers of JetStream on loopback. The members of `RestartableNats` are those of the first or of all. */
export type NatsCluster = RestartableNats & {
  nodes: readonly ClusterNode[];
  /** The addresses of all servers, as `NATS_URL` has them. */
  urls: string;
  /** Returns the node that leads a stream. */
  leaderOf(stream: string): Promise<ClusterNode>;
};

const host = "127.0.0.1";
const size = 3;
const nameOf = (at: number) => `nats-${at}`;

/** Returns the port for the route of `from` to `to`, a server that accepts routes at `port`. */
type FindRoute = (route: { from: string; to: string; port: number }) => Promise<number>;

export async function startNatsCluster(
  binary: string,
  findRoute: FindRoute = async ({ port }) => port,
): Promise<NatsCluster> {
  const ports: number[] = [];
  while (ports.length < size) ports.push(await findFreePort(host));
  const nodes = await Promise.all(
    ports.map(async (port, at) => {
      const name = nameOf(at);
      const others = ports.flatMap((other, to) =>
        to === at ? [] : findRoute({ from: name, to: nameOf(to), port: other }),
      );
      return startNode(binary, { name, port, routes: await Promise.all(others) });
    }),
  );
  const [first] = nodes as [StartedNode, ...StartedNode[]];
  const all = (work: (node: StartedNode) => Promise<unknown>) => async () =>
    void (await Promise.all(nodes.map(work)));
  return {
    nodes,
    url: first.url,
    urls: nodes.map(({ url }) => url).join(","),
    storeDir: first.storeDir,
    kill: all((node) => node.kill()),
    start: all((node) => node.start()),
    shutDown: all((node) => node.stop()),
    stop: all((node) => node.stop().then(() => removeTemporary(node.storeDir))),
    signal(name) {
      for (const node of nodes) node.signal(name);
    },
    leaderOf: (stream) => findLeader(nodes, stream),
  };
}

type StartedNode = ClusterNode & { storeDir: string; stop(): Promise<void> };

async function startNode(
  binary: string,
  node: { name: string; port: number; routes: readonly number[] },
): Promise<StartedNode> {
  const storeDir = mkdtempSync(join(tmpdir(), "halyard-test-nats-"));
  const { name } = node;
  const routes = node.routes.map((port) => `"nats://${host}:${port}"`).join(", ");
  const settings = [
    `server_name: ${name}`,
    // Servers tell each other this address. Nothing listens there, so that the configured routes are the only ones.
    `cluster { name: test, listen: "${host}:${node.port}", advertise: "${host}:1", routes: [${routes}] }`,
    natsTestUsers,
  ].join("\n");
  const options = { binary, storeDir, settings, throwaway: true };
  let server: LocalNats = await startLocalNats(options);
  const { url, port } = server;
  return {
    ...{ name, url, storeDir },
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
    },
    async start() {
      server = await startLocalNats({ ...options, port });
    },
    async stop() {
      await server.stop();
    },
    signal: (signal) => void process.kill(server.pid, signal),
    forget: () => rmSync(join(storeDir, "jetstream"), { recursive: true, force: true }),
  };
}

async function findLeader(nodes: readonly ClusterNode[], stream: string): Promise<ClusterNode> {
  const connection = await connect({ servers: nodes.map(({ url }) => url) });
  try {
    const manager = await jetstreamManager(connection);
    const { cluster } = await manager.streams.info(stream);
    const leader = nodes.find(({ name }) => name === cluster?.leader);
    if (leader === undefined) throw new Error(`${stream} has no leader`);
    return leader;
  } finally {
    await connection.close();
  }
}
