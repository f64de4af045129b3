/**
 * The servers that tests run against. `globalSetup` starts PostgreSQL once for a whole run and finds a NATS server. It
 * passes them to the test files in the environment.
 *
 * PostgreSQL comes from TEST_POSTGRES_URL, from a container (TEST_BACKENDS=containers), or from the binaries that npm
 * installed, in this order. NATS comes from TEST_NATS_URL, from a container per test file, or from a server process per
 * worker. Test files that run at the same time cannot share a server, because the JetStream streams have fixed names.
 */
export type TestBackends = {
  /** URL with a superuser. */
  postgresAdminUrl: string;
  /** Database with the schemas of all services, from which the database of each test file is copied. */
  templateDatabase: string;
  nats:
    | { kind: "external"; url: string }
    | { kind: "containers"; image: string }
    | { kind: "embedded"; binary: string; urlOfWorker: readonly string[] };
};

const variable = "HALYARD_TEST_BACKENDS_JSON";

export function publishBackends(backends: TestBackends): void {
  process.env[variable] = JSON.stringify(backends);
}

export function testBackends(): TestBackends {
  const text = process.env[variable];
  if (text === undefined)
    throw new Error("The test backends do not run: start tests with `npm test`.");
  return JSON.parse(text) as TestBackends;
}
