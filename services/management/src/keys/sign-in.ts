import { createHash, timingSafeEqual } from "node:crypto";
import { readFile, unlink } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { compileCheck, SignInFile, SignInRequest } from "@halyard/contracts";
import { type App, createProblem, noSuchRoute, type Problem, sendProblem } from "@halyard/http";

/**
 * Exchanges the one-time code in the link of `npm start` for the demo's server key. The launcher writes the code's
 * digest and the key to a file. The request that deletes the file receives the key, so a code works once, even if two
 * requests arrive at the same time or at two processes.
 *
 * Only browsers on this machine may use the route. A website can resolve its own name to 127.0.0.1 and would then be of
 * the same origin as the gateway, so the `Host` must be a loopback name too. The gateway passes both on: the address of
 * the client counts from a trusted proxy only.
 */
export type SignInOptions = {
  /** File with the code's digest and the key. Without one, the route does not exist. */
  signInFile?: string | undefined;
};

const bodyLimitBytes = 1024;

/** Wrong codes after which the code is withdrawn. A code has 256 random bits, so they are no mistyped ones. */
const maxWrongCodes = 10;

const invalidCode = createProblem("NOT_FOUND_001", "The code is invalid, expired or already used.");

export function registerSignIn(app: App, { signInFile }: SignInOptions): void {
  if (signInFile === undefined) return;
  const checkBody = compileCheck(SignInRequest);
  const exchange = createExchange(signInFile);
  app.post("/dashboard/sign-in", {
    bodyLimit: bodyLimitBytes,
    onRequest: (request, reply, done) => {
      reply.header("cache-control", "no-store");
      if (isFromThisMachine(request)) done();
      else sendProblem(reply, noSuchRoute);
    },
    handler: async (request, reply) => {
      const checked = checkBody(request.body);
      if (!checked.ok) return sendProblem(reply, createProblem("VALIDATION_001", checked.problem));
      const exchanged = await exchange(checked.value.code);
      return "rejected" in exchanged ? sendProblem(reply, exchanged) : reply.send(exchanged);
    },
  });
}

type Exchanged = { server_key: string } | Problem;

function createExchange(path: string): (code: string) => Promise<Exchanged> {
  let wrongCodes = 0;
  return async (code) => {
    const file = await readSignInFile(path);
    if (file === undefined) return invalidCode;
    const isRight = timingSafeEqual(digestOf(code), Buffer.from(file.code_sha256, "hex"));
    if (!isRight) wrongCodes += 1;
    const isEnded = wrongCodes >= maxWrongCodes || Date.parse(file.expires_at) <= Date.now();
    if (!isRight && !isEnded) return invalidCode;
    const isDeletedByThis = await deleteFile(path);
    return isEnded || !isDeletedByThis ? invalidCode : { server_key: file.server_key };
  };
}

function digestOf(code: string): Buffer {
  return createHash("sha256").update(code).digest();
}

async function readSignInFile(path: string): Promise<SignInFile | undefined> {
  try {
    return SignInFile.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Returns false if another request deleted the file first. */
async function deleteFile(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

const loopbackAddress = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/;
const loopbackHost = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i;

function isFromThisMachine({ ip, headers }: { ip: string; headers: IncomingHttpHeaders }): boolean {
  const { host = "", origin } = headers;
  return (
    loopbackAddress.test(ip) &&
    loopbackHost.test(host) &&
    (origin === undefined || origin === `http://${host}`)
  );
}
