import { type IncomingHttpHeaders, IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { defaultCacheHeadersOf, isEventStream, type RouteContract } from "@halyard/contracts";
import { withSpan } from "@halyard/tracing";
import type { FastifyReply, FastifyRequest, HTTPMethods, RouteOptions } from "fastify";
import type { z } from "zod";
import { type Answer, createProblem, isProblem, type Problem } from "./answer.ts";
import { compileAnswerCheck } from "./answer-checks.ts";
import type { App } from "./app.ts";
import { appSettings } from "./app-settings.ts";
import { allowLongBody, discardRest, hasBody } from "./body-timeout.ts";
import { acceptsGzip, compress, compressParts, minCompressedBytes } from "./content-coding.ts";
import { readIfMatch } from "./entity-tag.ts";
import { jsonType, sendProblem } from "./error-answers.ts";
import { compileInputChecks } from "./input-checks.ts";
import { rejectMalformed } from "./malformed-http.ts";
import { stringify } from "./raw-json.ts";
import { spanOf } from "./request-spans.ts";
import { acceptStreams } from "./streamed-body.ts";

/** The parts of a request, beside its validated input, that a handler can use. */
export type RequestFacts = {
  id: string;
  ip: string;
  headers: IncomingHttpHeaders;
  /** The parameters of the path as they were sent. Absent outside of routes with a contract. */
  params?: Readonly<Record<string, string>>;
  /** The entity tags of `If-Match`, or only `*`, if the route honors it. */
  ifMatch?: readonly string[];
  /** The value of `Idempotency-Key` as it was sent. */
  idempotencyKey?: string;
  /** The unread body, if the route has `streamedBody`. A part that the handler does not read is discarded. */
  stream?: IncomingMessage;
};

export type RouteInput<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType> = {
  params: z.infer<P>;
  query: z.infer<Q>;
  /** An empty object if an optional body is missing. */
  body: z.infer<B>;
  request: RequestFacts;
};

export type Awaitable<T> = T | Promise<T>;

type Handling<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  Principal extends object,
> = {
  /** Authenticates the caller before the body is read. */
  authenticate: (request: RequestFacts) => Awaitable<Principal | Problem>;
  /**
   * Delays an authenticated request before its body is read, or rejects it. The returned function is called once: when
   * the request has been handled, or when it ends before that.
   */
  admitBody?: (
    input: { params: z.infer<P>; request: RequestFacts },
    principal: Principal,
  ) => Awaitable<(() => void) | Problem | undefined>;
  /** Time within which the body of an admitted request must arrive. Then its connection is closed. For tests. */
  admittedBodyMs?: number;
  handle: (input: RouteInput<P, Q, B>, principal: Principal) => Awaitable<Answer | Problem>;
};

/** Enough for 1 MiB at 1 Mbit/s. A slower body would keep the turn of its organization. */
const defaultAdmittedBodyMs = 10_000;

/**
 * Takes each well-formed request of a route before its body is read, instead of the steps of `registerRoute`, and
 * writes the response itself. This is for a route whose responses cost less than those steps.
 */
type Taking = { take: (request: FastifyRequest, response: ServerResponse) => void };

/** Results of `onRequest` for the handler. */
type Admission = {
  principal: object;
  params: unknown;
  facts: RequestFacts;
  /** Called when the request has been handled. Undefined when the handler has begun. */
  onHandled?: (() => void) | undefined;
};
const admissionKey = Symbol("halyard.admission");
type AdmittedRequest = FastifyRequest & { [admissionKey]: Admission };

/**
 * Registers a route by its contract. A request passes these steps: authentication (401, 403), the parameters of the
 * path (404), `admitBody` (429), parsing of the body (413, 415, 400), validation of `If-Match`, query and body (400),
 * and the handler, which receives typed input. A `GET` route also accepts `HEAD`: Node sends the same headers without
 * the body.
 */
export function registerRoute<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  Principal extends object,
>(
  app: App,
  contract: RouteContract<P, Q, B>,
  options: Handling<P, Q, B, Principal> | Taking,
): void {
  const methods: HTTPMethods[] = [contract.method];
  if (contract.alsoMethod !== undefined) methods.push(contract.alsoMethod);
  // A stream has no HEAD, which would return no events.
  if (contract.method === "GET" && !isEventStream(contract)) methods.push("HEAD");
  const { streamedBody } = contract;
  const addTo = (scope: App) =>
    scope.route({
      method: methods,
      url: contract.path,
      exposeHeadRoute: false,
      ...("take" in options ? takenSteps(options) : stepsOf(app, contract, options)),
    });
  if (streamedBody === undefined) addTo(app);
  else
    app.register((scope, _options, done) => {
      acceptStreams(scope, Object.keys(streamedBody));
      addTo(scope);
      done();
    });
}

type Steps = Pick<RouteOptions, "config" | "onRequest" | "handler">;

function takenSteps({ take }: Taking): Steps {
  return {
    config: { measured: false, hijacked: true },
    // The framework calls the handler after it has read the body.
    onRequest(request, reply) {
      if (rejectMalformed(request, reply)) return;
      reply.hijack();
      take(request, reply.raw);
    },
    handler: () => undefined,
  };
}

function stepsOf<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  Principal extends object,
>(app: App, contract: RouteContract<P, Q, B>, options: Handling<P, Q, B, Principal>): Steps {
  const checks = compileInputChecks(contract);
  const checkAnswer = appSettings(app).checkAnswers
    ? compileAnswerCheck(contract as unknown as RouteContract)
    : undefined;
  if (!app.hasRequestDecorator(admissionKey)) app.decorateRequest(admissionKey, undefined);
  // The length of a compressed response would depend on a key in it.
  const compresses = contract.carriesKey !== true;
  // The headers of a response take precedence.
  const cacheHeaders = { ...defaultCacheHeadersOf(contract as unknown as RouteContract) };

  async function admit(request: FastifyRequest, reply: FastifyReply) {
    reply.headers(cacheHeaders);
    const facts = factsOf(request);
    const principal = await options.authenticate(facts);
    if (isProblem(principal)) return sendProblem(reply, principal);
    const params = checks.params(request.params);
    if (isProblem(params)) return sendProblem(reply, params);
    const input = { params: params.value as z.infer<P>, request: facts };
    const onHandled = await options.admitBody?.(input, principal);
    if (onHandled !== undefined && isProblem(onHandled)) return sendProblem(reply, onHandled);
    const admission: Admission = { principal, params: params.value, facts, onHandled };
    if (!endIfUnhandled(admission, reply.raw, options.admittedBodyMs ?? defaultAdmittedBodyMs))
      return reply.hijack();
    (request as AdmittedRequest)[admissionKey] = admission;
    return undefined;
  }

  async function respond(request: FastifyRequest, reply: FastifyReply) {
    const { principal, params, facts } = (request as AdmittedRequest)[admissionKey];
    const stream = contract.streamedBody && beginStream(request);
    if (stream !== undefined && isProblem(stream)) return sendProblem(reply, stream);
    if (stream !== undefined) facts.stream = stream;
    const ifMatch = request.headers["if-match"];
    if (contract.conditional === true && ifMatch !== undefined) {
      const tags = readIfMatch(ifMatch);
      if (isProblem(tags)) return sendProblem(reply, tags);
      facts.ifMatch = tags;
    }
    const query = checks.query(request.query as Record<string, unknown>, request.raw.url ?? "");
    if (isProblem(query)) return sendProblem(reply, query);
    const body = checks.body(stream === undefined ? request.body : undefined);
    if (isProblem(body)) return sendProblem(reply, body);
    const input = {
      params: params as z.infer<P>,
      query: query.value,
      body: body.value as z.infer<B>,
      request: facts,
    };
    const given = await options.handle(input, principal as Principal);
    checkAnswer?.(given);
    if (isProblem(given)) return sendProblem(reply, given);
    return sendAnswer(reply, given, { compresses });
  }

  return {
    // The duration of a stream is not that of a request.
    config: { measured: !isEventStream(contract) },
    onRequest: admit,
    handler: (request, reply) =>
      withSpan(spanOf(request), () =>
        whileAdmitted((request as AdmittedRequest)[admissionKey], () => respond(request, reply)),
      ),
  };
}

/**
 * Ends the admission of a request whose handler never begins: its body is invalid or does not arrive in time, or its
 * client leaves before the end of the body. Returns false if the client has left already.
 */
function endIfUnhandled(admission: Admission, response: ServerResponse, withinMs: number): boolean {
  if (admission.onHandled === undefined) return true;
  if (response.destroyed) {
    admission.onHandled();
    return false;
  }
  const timer = setTimeout(() => {
    if (admission.onHandled !== undefined) response.destroy();
  }, withinMs);
  response.once("close", () => {
    clearTimeout(timer);
    admission.onHandled?.();
  });
  return true;
}

/** Ends the admission of a request when its handler has ended, even if the client leaves before. */
async function whileAdmitted<Result>(
  admission: Admission,
  handle: () => Promise<Result>,
): Promise<Result> {
  const { onHandled, facts } = admission;
  admission.onHandled = undefined;
  try {
    return await handle();
  } finally {
    if (facts.stream !== undefined) discardRest(facts.stream);
    onHandled?.();
  }
}

/** Returns the body as a stream. A client that forgets the body must not replace a resource by an empty one. */
function beginStream(request: FastifyRequest): IncomingMessage | Problem {
  const { body, headers } = request;
  const isEmpty = !hasBody(request) || Number(headers["content-length"]) === 0;
  if (!(body instanceof IncomingMessage) || isEmpty) return noStream;
  allowLongBody(body);
  return body;
}

const noStream = createProblem("VALIDATION_001", "The body must not be empty.");

function factsOf(request: FastifyRequest): RequestFacts {
  const { id, ip, headers } = request;
  const params = request.params as Record<string, string>;
  const facts: RequestFacts = { id, ip, headers, params };
  const idempotencyKey = headers["idempotency-key"];
  if (typeof idempotencyKey === "string") facts.idempotencyKey = idempotencyKey;
  return facts;
}

/** Time-out for a client that reads nothing of a body in parts. The gateway has the same time-out. */
const maxStallMs = 60_000;

const streamHeaders = {
  "content-type": "text/event-stream",
  "x-accel-buffering": "no",
  connection: "close",
};

async function sendAnswer(
  reply: FastifyReply,
  given: Answer,
  { compresses }: { compresses: boolean },
): Promise<FastifyReply> {
  reply.code(given.status);
  if (given.headers !== undefined) reply.headers(given.headers);
  if (given.stream !== undefined) return sendStream(reply, given.status, given.stream);
  if (given.parts !== undefined) return sendParts(reply, given.parts);
  const body = given.json ?? (given.body === undefined ? undefined : stringify(given.body));
  if (body === undefined) return reply.send();
  reply.header("content-type", jsonType);
  if (!compresses || Buffer.byteLength(body) < minCompressedBytes) return reply.send(body);
  return reply.send(chooseGzip(reply) ? await compress(body) : body);
}

function sendStream(
  reply: FastifyReply,
  status: number,
  begin: NonNullable<Answer["stream"]>,
): FastifyReply {
  reply.hijack();
  const headers = reply.getHeaders() as Record<string, string>;
  reply.raw.writeHead(status, { ...headers, ...streamHeaders });
  begin(reply.raw);
  return reply;
}

function sendParts(reply: FastifyReply, parts: NonNullable<Answer["parts"]>): FastifyReply {
  reply.header("content-type", jsonType);
  const gzips = chooseGzip(reply);
  // Without a body, the parts need not be read from the database.
  if (reply.request.method === "HEAD") return reply.send();
  // Without a callback the time-out destroys the connection.
  reply.raw.setTimeout(maxStallMs);
  return reply.send(gzips ? compressParts(parts) : Readable.from(parts));
}

/** Sets the headers of a response that is compressed for clients that accept it. Returns whether the client does. */
function chooseGzip(reply: FastifyReply): boolean {
  // Caches store responses to reads only.
  const vary = reply.getHeader("vary");
  if (vary !== undefined) reply.header("vary", `${vary}, Accept-Encoding`);
  if (!acceptsGzip(reply.request.headers["accept-encoding"])) return false;
  reply.header("content-encoding", "gzip");
  return true;
}
