import { documentVariables, readEnvironment } from "@halyard/configuration";
import { describe, expect, it, jest } from "@jest/globals";
import { z } from "zod";
import {
  type Container,
  environmentOfImages,
  generateEnv,
  readComposeFile,
  readProjectFile,
  variablesOf,
  variablesOfComposeFile,
} from "./compose-file.ts";

/** Checks docker-compose.yml against the configuration schemas of the services. Needs no Docker engine. */
const generated = variablesOf(generateEnv());
const { services, networks } = readComposeFile(generated);

const byDefault = Object.fromEntries(
  Object.entries(services).filter(([, { profiles }]) => profiles === undefined),
);

const halyard = Object.entries(services).filter(([, { image }]) => image.startsWith("halyard/"));
const serviceOf = ({ image }: Container) => image.replace(/^halyard\/|:.*$/g, "");
const networksOf = ({ networks: given }: Container) =>
  Array.isArray(given) ? given : Object.keys(given);
const isMigration = ({ command }: Container) => command?.includes("src/migrate.ts") ?? false;
const programs = halyard.map(([name, container]) => ({ name, container }));

/** The configuration of a migration. */
const migrationSchema = z.object({ POSTGRES_OWNER_URL: z.url() });

type Program = { configSchema: z.ZodObject; readConfig: () => unknown };

/** Returns the schema of a container, and the function that reads `process.env` at its start. */
async function programOf(container: Container): Promise<Program> {
  if (isMigration(container)) {
    const readConfig = () => readEnvironment(migrationSchema, process.env);
    return { configSchema: migrationSchema, readConfig };
  }
  if (container.command?.includes("src/doctor.ts"))
    return import("../../setup/src/doctor/config.ts");
  const service = serviceOf(container);
  const folder = ["dashboard", "setup"].includes(service) ? "deploy" : "services";
  return import(new URL(`../../../${folder}/${service}/src/config.ts`, import.meta.url).href);
}

describe("docker-compose.yml", () => {
  it.each(programs)("sets every variable that $name requires to a valid value", async (program) => {
    const { container } = program;
    const { readConfig } = await programOf(container);
    const environment = { ...environmentOfImages(), ...container.environment };
    const replaced = jest.replaceProperty(process, "env", environment);
    try {
      expect(readConfig).not.toThrow();
    } finally {
      replaced.restore();
    }
  });

  it.each(programs)("sets no variable that $name does not read", async ({ container }) => {
    const { configSchema } = await programOf(container);
    const known = documentVariables(configSchema).map(({ name }) => name);
    const unknown = Object.keys(container.environment ?? {}).filter(
      (name) => !known.includes(name),
    );
    expect(unknown).toEqual([]);
  });

  it.each(programs)("builds $name from the shared Dockerfile", ({ container }) => {
    const version = JSON.parse(readProjectFile("package.json")).version;
    expect(container.build?.dockerfile).toBe("deploy/docker/Dockerfile");
    expect(container.build?.args).toEqual({ SERVICE: serviceOf(container), VERSION: version });
    expect(container.image).toBe(`halyard/${serviceOf(container)}:${version}`);
  });

  it("denies new privileges to all containers, and capabilities to all except PostgreSQL", () => {
    for (const [name, container] of Object.entries(services)) {
      const { read_only, cap_drop, security_opt } = container;
      expect({ name, read_only, cap_drop, security_opt }).toEqual({
        name,
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
    }
    const withCapabilities = Object.entries(services).filter(([, one]) => "cap_add" in one);
    expect(withCapabilities.map(([name]) => name)).toEqual(["postgres"]);
  });

  it("bounds the memory and the processes of every container", () => {
    const unbounded = Object.entries(services).filter(
      ([, { mem_limit, pids_limit }]) => mem_limit === undefined || pids_limit === undefined,
    );
    expect(unbounded).toEqual([]);
  });

  it("names the images of other projects by exact tags", () => {
    const images = [services.postgres, services.nats, services.gateway].map(
      (container) => container?.image,
    );
    const [, base] =
      /^ARG NODE_IMAGE=(.*)$/m.exec(readProjectFile("deploy/docker/Dockerfile")) ?? [];
    for (const image of [...images, base])
      expect(image).toMatch(/^\w+:\d+\.\d+(\.\d+)?(-slim)?(@sha256:[0-9a-f]{64})?$/);
  });

  it("connects each container only to the servers that it needs", () => {
    const reached = Object.fromEntries(
      Object.entries(services).map(([name, container]) => [name, networksOf(container).toSorted()]),
    );
    const withSchema = ["broker", "database", "services"];
    expect(reached).toEqual({
      postgres: ["database"],
      nats: ["broker"],
      setup: ["broker", "database"],
      doctor: withSchema,
      "migrate-management": ["database"],
      "migrate-scheduler": ["database"],
      "migrate-webhook-dispatcher": ["database"],
      "migrate-usage-metering": ["database"],
      // Identity providers are on the internet.
      management: ["broker", "database", "internet", "services"],
      scheduler: withSchema,
      "webhook-dispatcher": ["broker", "database", "internet", "services"],
      "usage-metering": withSchema,
      "sdk-edge-1": ["broker", "services"],
      "sdk-edge-2": ["broker", "services"],
      dashboard: ["services"],
      gateway: ["internet", "services"],
      prometheus: ["internet", "services"],
      grafana: ["internet", "services"],
      "otel-collector": ["services"],
      jaeger: ["internet", "services"],
    });
    const open = Object.keys(networks).filter((name) => networks[name]?.internal !== true);
    expect(open).toEqual(["internet"]);
  });

  it("publishes only the gateway by default, on the loopback interface", () => {
    const published = Object.entries(byDefault).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => `${name} ${port}`),
    );
    expect(published).toEqual(["gateway 127.0.0.1:8080:8080"]);
  });

  it("publishes the profile observability on the loopback interface only", () => {
    const ports = Object.values(services)
      .filter(({ profiles }) => profiles?.includes("observability"))
      .flatMap((container) => container.ports ?? []);
    expect(ports.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
    expect(ports).toHaveLength(3);
  });

  it("publishes TLS with deploy/docker/tls.yml, on the port and with the variable of the gateway", () => {
    const env = { TLS_CERTIFICATE_FILE: "/etc/halyard/tls.pem" };
    const { services: added, secrets = {} } = readComposeFile(env, "deploy/docker/tls.yml");
    const { environment = {}, secrets: given, ports } = added.gateway as Container;
    const [name = "", ...others] = given ?? [];
    expect([others, secrets[name]]).toEqual([[], { file: "/etc/halyard/tls.pem" }]);
    expect(environment).toEqual({ TLS_CERTIFICATE_FILE: `/run/secrets/${name}` });
    const configuration = readProjectFile("deploy/gateway/haproxy/haproxy.cfg");
    expect(configuration).toContain(".if defined(TLS_CERTIFICATE_FILE)");
    const [, port] = /presetenv TLS_PORT (\d+)/.exec(configuration) ?? [];
    expect(ports).toEqual([`443:${port}`]);
  });

  it("has a container, or an alias of all edges, for each name in the gateway's configuration", () => {
    const configuration = readProjectFile("deploy/gateway/haproxy/haproxy.cfg");
    const names = [...configuration.matchAll(/^ {2}presetenv \w+_ADDRESS (\S+):(\d+)$/gm)];
    expect(new Set(names.map(([, , port]) => port))).toEqual(new Set([environmentOfImages().PORT]));
    const reached = Object.entries(byDefault).filter(
      ([name, container]) => name !== "gateway" && networksOf(container).includes("services"),
    );
    const known = reached.map(([name, { networks: given }]) =>
      Array.isArray(given) ? name : given.services?.aliases?.[0],
    );
    expect(names.map(([, name]) => name).toSorted()).toEqual([...new Set(known)].toSorted());
    expect(known.filter((name) => name === "sdk-edge")).toHaveLength(2);
  });

  it("gives each edge its own cache", () => {
    const caches = [services["sdk-edge-1"], services["sdk-edge-2"]].map((edge) => edge?.volumes);
    expect(caches).toEqual([["sdk-edge-1:/var/cache/halyard"], ["sdk-edge-2:/var/cache/halyard"]]);
    expect(services["sdk-edge-1"]?.environment?.SNAPSHOT_CACHE_FILE).toMatch(
      /^\/var\/cache\/halyard\//,
    );
  });

  it("starts a service after its migration, and a migration after the setup", () => {
    for (const [name, container] of halyard.filter(([, one]) => isMigration(one))) {
      const service = serviceOf(container);
      expect(container.depends_on?.setup?.condition).toBe("service_completed_successfully");
      expect(services[service]?.depends_on?.[name]?.condition).toBe(
        "service_completed_successfully",
      );
    }
  });

  it("lets every role log in with the password that the setup sets", () => {
    const passwords = services.setup?.environment ?? {};
    const urls = halyard.flatMap(([, { environment = {} }]) =>
      [environment.POSTGRES_URL, environment.POSTGRES_OWNER_URL].filter((url) => url !== undefined),
    );
    expect(urls).toHaveLength(9);
    for (const url of urls.map((text) => new URL(text))) {
      const role = url.username === "halyard_doctor" ? "doctor" : url.username;
      expect(url.password).toBe(passwords[`${role.toUpperCase()}_PASSWORD`]);
    }
  });

  it("restarts every service that ends, and no job that has succeeded", () => {
    const policies = halyard
      .filter(([, { profiles }]) => profiles === undefined)
      .map(([, { command, image, restart }]) => ({
        isJob: command !== undefined || image.startsWith("halyard/setup:"),
        restart,
      }));
    for (const { isJob, restart } of policies)
      expect(restart).toBe(isJob ? "on-failure:5" : "unless-stopped");
  });
});

describe("the .env file", () => {
  it("has a password for every NATS user of the server's configuration", () => {
    const used = [
      ...readProjectFile("deploy/docker/nats-users.conf").matchAll(/password: \$(\w+)/g),
    ];
    const names = used.map(([, name = ""]) => name);
    expect(Object.keys(services.nats?.environment ?? {}).toSorted()).toEqual(names.toSorted());
    for (const name of names) expect(generated[name]).toMatch(/^[a-z][0-9a-f]{64}$/);
  });

  it("is generated with different values for each secret and each run", () => {
    const secretsOf = (env: Record<string, string>) =>
      Object.entries(env).flatMap(([name, value]) => (/^PORT$|^BIND/.test(name) ? [] : [value]));
    const all = [...secretsOf(generated), ...secretsOf(variablesOf(generateEnv()))];
    expect(new Set(all).size).toBe(all.length);
  });

  it("has an example with exactly the variables of docker-compose.yml", () => {
    const example = Object.keys(variablesOf(readProjectFile(".env.example")));
    expect(new Set(example)).toEqual(variablesOfComposeFile());
    expect(example).toEqual(expect.arrayContaining(Object.keys(generated)));
  });

  it("is required: without it, the error names the command that writes it", () => {
    expect(() => readComposeFile({})).toThrow("sh deploy/docker/generate-env > .env");
  });
});
