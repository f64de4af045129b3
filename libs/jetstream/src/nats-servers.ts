import { readFileSync } from "node:fs";
import {
  type Authenticator,
  type ConnectionOptions,
  credsAuthenticator,
  nkeyAuthenticator,
} from "@nats-io/transport-node";

/** The NATS servers and the credentials for them: a password, a credentials file or the seed of an nkey. */
export type NatsServers = {
  /** Addresses such as `nats://host:4222`, separated by commas. */
  url: string;
  user?: string | undefined;
  password?: string | undefined;
  /** Path of a file with a JWT and the seed of an nkey (`.creds`). */
  credentialsFile?: string | undefined;
  /** Path of a file with the seed of an nkey. */
  nkeySeedFile?: string | undefined;
  /** Path of a CA certificate. With it, connections require TLS and a certificate that this CA signed. */
  tlsCaFile?: string | undefined;
  /** Paths of a client certificate and its key, for servers that verify clients. */
  tlsCertFile?: string | undefined;
  tlsKeyFile?: string | undefined;
};

/**
 * Returns the connection options. Throws if a file with credentials cannot be used. The options contain no undefined
 * members, which the client would reject.
 */
export function serverOptions(nats: NatsServers): ConnectionOptions {
  const { tlsCaFile: caFile, tlsCertFile: certFile, tlsKeyFile: keyFile } = nats;
  const authenticator = authenticatorOf(nats);
  const tls = {
    ...(caFile && { caFile }),
    ...(certFile && { certFile }),
    ...(keyFile && { keyFile }),
  };
  return {
    servers: nats.url.split(","),
    ...(nats.user !== undefined && { user: nats.user }),
    ...(nats.password !== undefined && { pass: nats.password }),
    ...(authenticator !== undefined && { authenticator }),
    ...(Object.keys(tls).length > 0 && { tls }),
  };
}

function authenticatorOf({
  credentialsFile,
  nkeySeedFile,
}: NatsServers): Authenticator | undefined {
  if (credentialsFile !== undefined)
    return readAtLogin(credentialsFile, "a JWT and an nkey (.creds)", (content) =>
      credsAuthenticator(content),
    );
  if (nkeySeedFile !== undefined)
    return readAtLogin(nkeySeedFile, "the seed of a user's nkey", (content) =>
      nkeyAuthenticator(seedIn(content)),
    );
  return undefined;
}

/** A file contains no usable credentials. The message contains its name and nothing of its content. */
class CredentialsFileError extends Error {
  override readonly name = "CredentialsFileError";
  readonly hasSafeMessage = true;
}

/**
 * Returns an authenticator that reads the file at every login, so that renewed credentials need no restart. If that
 * fails, it returns no credentials: the server then rejects the login, and the client retries. An error in an
 * authenticator would close the connection permanently.
 */
function readAtLogin(
  file: string,
  expected: string,
  create: (content: Buffer) => Authenticator,
): Authenticator {
  const login: Authenticator = (nonce) => create(readFileSync(file))(nonce);
  try {
    login("nonce");
  } catch (cause) {
    throw new CredentialsFileError(`The file ${file} must contain ${expected}.`, { cause });
  }
  return (nonce) => {
    try {
      return login(nonce);
    } catch {
      return undefined;
    }
  };
}

const seedLine = /^SU[A-Z2-7]{56}$/m;

function seedIn(content: Buffer): Uint8Array {
  const [seed = ""] = seedLine.exec(content.toString("utf8")) ?? [];
  return Buffer.from(seed);
}
