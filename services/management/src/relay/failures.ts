/** Another process leads, or our lease has run out: what we were about to publish is not ours to. */
export class LeadershipLostError extends Error {
  override name = "LeadershipLostError";
  readonly hasSafeMessage = true;
}

/** A stream does not stand where we left it, so it has to be looked at again before we go on. */
export class StreamMovedError extends Error {
  override name = "StreamMovedError";
  readonly hasSafeMessage = true;
}
