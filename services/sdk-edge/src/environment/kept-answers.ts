/**
 * Answers that were given before and may be wanted again, by their tags. Each environment keeps some
 * of its own, for as long as its flags do not change; all together they keep no more than one budget
 * allows. When it is used up, the answers of that environment are forgotten that began to keep some
 * longest ago; so what the former states of environments have left behind goes by itself.
 */
export type KeptAnswers<T> = {
  get(tag: string): T | undefined;
  /** Keeps an answer if there is room among those of its environment. */
  keep(tag: string, answer: T, characters: number): void;
  clear(): void;
};

export type KeptAnswersBudget = {
  /** A place for the answers of one state of one environment. */
  open<T>(): KeptAnswers<T>;
  /** What is kept at present. */
  readonly characters: number;
};

/** One character is one byte, because answers are ASCII; so much is a fraction of what an edge needs. */
const mostCharacters = 64 * 1024 * 1024;

/** Hundreds of small answers, or a few large ones: those of the users that are alike. */
const mostCharactersEach = 256 * 1024;

export function createKeptAnswersBudget({
  most = mostCharacters,
  mostEach = mostCharactersEach,
}: {
  most?: number;
  mostEach?: number;
} = {}): KeptAnswersBudget {
  /** The places that hold something, in the order in which they began to. */
  const places = new Map<() => void, number>();
  let total = 0;

  function forget(place: () => void): void {
    total -= places.get(place) ?? 0;
    places.delete(place);
    place();
  }

  function makeRoom(characters: number): void {
    for (const place of places.keys()) {
      if (total + characters <= most) return;
      forget(place);
    }
  }

  return {
    open<T>(): KeptAnswers<T> {
      const answers = new Map<string, T>();
      const empty = () => answers.clear();
      return {
        get: (tag) => answers.get(tag),
        keep(tag, answer, characters) {
          if (answers.has(tag) || (places.get(empty) ?? 0) + characters > mostEach) return;
          makeRoom(characters);
          answers.set(tag, answer);
          places.set(empty, (places.get(empty) ?? 0) + characters);
          total += characters;
        },
        clear: () => forget(empty),
      };
    },
    get characters() {
      return total;
    },
  };
}

/** What all environments of this process share. */
export const keptAnswers = createKeptAnswersBudget();
