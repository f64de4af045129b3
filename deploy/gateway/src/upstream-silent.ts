/** The upstream has sent nothing for too long. */
export class UpstreamSilent extends Error {
  readonly hasSafeMessage = true;
  constructor(origin: URL) {
    super(`${origin.origin} has been silent for too long`);
    this.name = "UpstreamSilent";
  }
}
