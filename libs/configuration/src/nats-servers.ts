import { accessSync, constants } from "node:fs";
import { ConfigurationError } from "./configuration-error.ts";

type NatsConfig = {
  NATS_URL: string;
  NATS_USER?: string | undefined;
  NATS_PASSWORD?: string | undefined;
  NATS_CREDENTIALS_FILE?: string | undefined;
  NATS_NKEY_SEED_FILE?: string | undefined;
  NATS_TLS_CA_FILE?: string | undefined;
  NATS_TLS_CERT_FILE?: string | undefined;
  NATS_TLS_KEY_FILE?: string | undefined;
};

/**
 * Returns the NATS servers of a configuration, in the form for `connectNats`. Throws a `ConfigurationError` if
 * variables contradict each other or a file cannot be read.
 */
export function natsServers(config: NatsConfig) {
  const problems = [...contradictions(config), ...unreadableFiles(config)];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    url: config.NATS_URL,
    user: config.NATS_USER,
    password: config.NATS_PASSWORD,
    credentialsFile: config.NATS_CREDENTIALS_FILE,
    nkeySeedFile: config.NATS_NKEY_SEED_FILE,
    tlsCaFile: config.NATS_TLS_CA_FILE,
    tlsCertFile: config.NATS_TLS_CERT_FILE,
    tlsKeyFile: config.NATS_TLS_KEY_FILE,
  };
}

const pairs = [
  ["NATS_USER", "NATS_PASSWORD"],
  ["NATS_TLS_CERT_FILE", "NATS_TLS_KEY_FILE"],
] as const;

const logins = ["NATS_USER", "NATS_CREDENTIALS_FILE", "NATS_NKEY_SEED_FILE"] as const;

function contradictions(config: NatsConfig): string[] {
  const isSet = (name: keyof NatsConfig) => config[name] !== undefined;
  const halves = pairs.flatMap(([one, other]) => {
    if (isSet(one) === isSet(other)) return [];
    const [given, missing] = isSet(one) ? [one, other] : [other, one];
    return [`${given} is set without ${missing}: set both or neither.`];
  });
  const given = logins.filter(isSet);
  if (given.length < 2) return halves;
  return [...halves, `Only one of ${given.join(" and ")} may be set: each is a complete login.`];
}

const fileVariables = [
  "NATS_CREDENTIALS_FILE",
  "NATS_NKEY_SEED_FILE",
  "NATS_TLS_CA_FILE",
  "NATS_TLS_CERT_FILE",
  "NATS_TLS_KEY_FILE",
] as const;

function unreadableFiles(config: NatsConfig): string[] {
  return fileVariables.flatMap((name) => {
    const file = config[name];
    if (file === undefined || isReadable(file)) return [];
    return [`${name} must be the path of a file that this process can read.`];
  });
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
