/**
 * The real servers that tests run against. `globalSetup` starts PostgreSQL once for a whole run and
 * finds a NATS server; what it found travels to the test files in the environment.
 *
 * PostgreSQL comes from TEST_POSTGRES_URL, else from a container (TEST_BACKENDS=containers, with a
 * Docker engine), else from the binaries that npm installed. NATS comes from TEST_NATS_URL, else from
 * a container a test file, else from a server process a test file: JetStream's streams have fixed
 * names, so test files that run at the same time cannot share a server.
 */
export type TestBackends = {
  /** A superuser's address. */
  postgresAdminUrl: string;
  /** A database with every service's schema, from which each test file's database is copied. */
  templateDatabase: string;
  nats:
    | { kind: "external"; url: string }
    | { kind: "containers"; image: string }
    | { kind: "embedded"; binary: string };
};

const variable = "HALYARD_TEST_BACKENDS_JSON";

export function publishBackends(backends: TestBackends): void {
  process.env[variable] = JSON.stringify(backends);
}

export function testBackends(): TestBackends {
  const text = process.env[variable];
  if (text === undefined)
    throw new Error("The test backends are not up: run tests with `npm test`, which starts them.");
  return JSON.parse(text) as TestBackends;
}
