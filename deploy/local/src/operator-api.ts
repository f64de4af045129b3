import { StartError } from "./start-error.ts";

/** A write answers within 500 ms even without JetStream; the rest is for a machine under load. */
const ANSWER_PATIENCE_MS = 30_000;

export type Answer<T> = { status: number; body: T };

/** The operator's routes, called as any operator would. */
export type OperatorApi = {
  get<T>(path: string): Promise<Answer<T>>;
  /** Answers what was created; anything but success ends the start. */
  create<T>(path: string, body: unknown): Promise<T>;
};

export function createOperatorApi(options: { baseUrl: string; token: string }): OperatorApi {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const response = await fetch(new URL(path, options.baseUrl), {
      method,
      headers: { authorization: `Bearer ${options.token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(ANSWER_PATIENCE_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as T };
  };
  return {
    get: (path) => call("GET", path),
    async create<T>(path: string, body: unknown) {
      const answer = await call<T>("POST", path, body);
      if (answer.status === 201) return answer.body;
      throw new StartError(
        `The demo data could not be made: POST ${path} answered ${answer.status} ${JSON.stringify(answer.body)}.`,
      );
    },
  };
}
