import { ConfigurationError, natsServers } from "@halyard/configuration";
import { apiTimeoutMs, connectOnce, ensureStreams, isBrokerUnavailable } from "@halyard/jetstream";
import { isOutage, provisionDoctor, provisionService } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { jetstreamManager } from "@nats-io/jetstream";
import { type Config, readConfig, schemasOf } from "./config.ts";
import { reasonOf, retryWhileUnavailable } from "./retry.ts";

/** `npm run setup`: prepares PostgreSQL and NATS for the services. It can be run again at any time. */
const help = `Prepares PostgreSQL and NATS for Halyard. In PostgreSQL, it creates the database, and a
schema and two roles for each service that stores data. In NATS, it creates the streams
and buckets of JetStream. It creates only what is missing, and sets the passwords of the
roles. Run it again for an update or to change a password. Then run npm run migrate.

  npm run setup              prepares both servers
  npm run setup -- --help    shows this help

The command waits up to two minutes for each server. Environment (docs/configuration.md lists all
variables):

  POSTGRES_ADMIN_URL           postgres://postgres:secret@host:5432/postgres
  MANAGEMENT_OWNER_PASSWORD    and MANAGEMENT_SERVICE_PASSWORD; the same with SCHEDULER_,
                               WEBHOOKS_ and USAGE_
  DOCTOR_PASSWORD              role of npm run doctor, which reads settings only
  NATS_URL                     nats://host:4222, with NATS_USER, NATS_PASSWORD, NATS_TLS_CA_FILE
  JETSTREAM_REPLICAS           3 in a cluster of three NATS servers
  FLAG_EVENTS_MAX_BYTES        size limit of a new event stream; management changes an existing one

Exit code
  0    both servers are prepared
  1    a server is unavailable, or rejected a step
  2    the settings are invalid
`;

/** A server in a container or a cluster can take this long to start for the first time. */
const timeoutMs = 120_000;

const failedExitCode = 1;

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function preparePostgres(config: Config): Promise<void> {
  const schemas = schemasOf(config);
  const provision = async () => {
    for (const { schema, ownerPassword, runtimePassword } of schemas)
      await provisionService({
        adminUrl: config.POSTGRES_ADMIN_URL,
        database: config.POSTGRES_DATABASE,
        service: schema,
        ownerPassword,
        runtimePassword,
      });
    const { DOCTOR_PASSWORD: password, POSTGRES_ADMIN_URL: adminUrl } = config;
    if (password === undefined) return;
    await provisionDoctor({
      ...{ adminUrl, password, database: config.POSTGRES_DATABASE },
      schemas: schemas.map(({ schema }) => schema),
    });
  };
  const options = { server: "PostgreSQL", timeoutMs, isUnavailable: isOutage, say };
  await retryWhileUnavailable(provision, options);
  const names = schemas.map(({ schema }) => schema).join(", ");
  say(`PostgreSQL: database ${config.POSTGRES_DATABASE}, schemas and roles of ${names}`);
}

async function prepareNats(config: Config): Promise<void> {
  const prepare = async () => {
    const connection = await connectOnce({ nats: natsServers(config), name: "setup" });
    try {
      // Reports a server without JetStream.
      const manager = await jetstreamManager(connection, { timeout: apiTimeoutMs });
      return await ensureStreams(manager, {
        replicas: config.JETSTREAM_REPLICAS,
        flagEventsMaxBytes: config.FLAG_EVENTS_MAX_BYTES,
      });
    } finally {
      await connection.close();
    }
  };
  const options = { server: "NATS", timeoutMs, isUnavailable: isBrokerUnavailable, say };
  say(`NATS: streams ${(await retryWhileUnavailable(prepare, options)).join(", ")}`);
}

/** Returns whether the server was prepared. Prints a failure with the name of the server. */
async function prepared(server: string, work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    process.stderr.write(`${server} could not be prepared: ${reasonOf(error)}\n`);
    return false;
  }
}

await runCommand(async () => {
  const given = process.argv.slice(2);
  if (given.includes("--help") || given.includes("-h")) {
    process.stdout.write(help);
    return;
  }
  if (given.length > 0)
    throw new ConfigurationError([`Unknown option ${given.join(" ")}. See --help.`]);
  const config = readConfig();
  const results = [
    await prepared("PostgreSQL", preparePostgres(config)),
    await prepared("NATS", prepareNats(config)),
  ];
  if (results.includes(false)) process.exitCode = failedExitCode;
});
