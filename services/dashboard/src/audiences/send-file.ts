import { ApiProblem, ConnectionLost } from "../api/problem.ts";
import type { Audience } from "../api/schema.d.ts";

type Upload = {
  path: string;
  headers: Readonly<Record<string, string>>;
  /** The list is replaced only if the audience still has this version. */
  version: number;
  file: Blob;
  format: string;
  /** Receives the share of the file that was sent, from 0 to 1. */
  onProgress: (share: number) => void;
  signal: AbortSignal;
};

/**
 * Uploads the file of a list. It uses `XMLHttpRequest`, because `fetch` does not report the progress of an upload. Rejects
 * with an `ApiProblem`, with `ConnectionLost` without a response, or with the reason of the signal.
 */
export function sendFile(upload: Upload): Promise<Audience> {
  const { path, headers, version, file, format, onProgress, signal } = upload;
  const { promise, resolve, reject } = Promise.withResolvers<Audience>();
  const request = new XMLHttpRequest();
  request.open("PUT", path);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.setRequestHeader("Content-Type", format);
  request.setRequestHeader("If-Match", `"${version}"`);
  request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total);
  request.onload = () => {
    const body = bodyOf(request.responseText);
    const isSuccess = request.status >= 200 && request.status < 300;
    if (isSuccess) resolve(body as Audience);
    else reject(ApiProblem.from(body, responseOf(request)));
  };
  request.onerror = () => reject(new ConnectionLost());
  const abort = () => {
    request.abort();
    reject(signal.reason);
  };
  signal.addEventListener("abort", abort);
  request.send(file);
  return promise.finally(() => signal.removeEventListener("abort", abort));
}

/** Returns the body as JSON, or undefined for an error page of a proxy. */
function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the status and the headers that an error names. */
function responseOf(request: XMLHttpRequest): Response {
  const headers = new Headers();
  for (const name of ["retry-after", "x-request-id"]) {
    const value = request.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(null, { status: request.status, headers });
}
