/**
 * Sleep that ends at its time, or when the sleeper is woken. Who is woken while still at work does not
 * sleep the next time: what it was woken for may have come too late for that work.
 */
export type Alarm = {
  wake(): void;
  sleep(ms: number): Promise<void>;
};

/** For one sleeper. */
export function createAlarm(): Alarm {
  let ringing = Promise.withResolvers<void>();
  return {
    wake: () => ringing.resolve(),
    async sleep(ms) {
      const timer = setTimeout(ringing.resolve, Math.max(0, Math.ceil(ms)));
      await ringing.promise;
      clearTimeout(timer);
      ringing = Promise.withResolvers();
    },
  };
}
