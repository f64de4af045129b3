import {
  type Client,
  type ClientOptions,
  createClient,
  createTestClient,
} from "@halyard/browser-sdk";
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useState,
} from "react";

/** Values of flags by key. */
export type Flags = Readonly<Partial<Record<string, boolean>>>;

export type HalyardProviderProps = {
  children?: ReactNode;
  /** The values that the server used for the page. Default: `bootstrap` of the client or its options. */
  bootstrap?: Flags | undefined;
} & (
  | {
      /** A client that the application created, connects and closes. */
      client: Client;
      options?: undefined;
    }
  | {
      /**
       * Options of a client that is connected while the provider is mounted, never on a server. A new `context`
       * switches the user. Changes of other options need a new `key` of the provider.
       */
      options: ClientOptions;
      client?: undefined;
    }
);

/** The client of a provider, and the values that a server and a hydrating page render. */
export type Provided = { client: Client; serverFlags: Flags };

const HalyardContext = createContext<Provided | undefined>(undefined);

/** Provides flags to the components below it. */
export function HalyardProvider(props: HalyardProviderProps): ReactElement {
  const { children, options, bootstrap } = props;
  const [own] = useState(() =>
    props.client === undefined
      ? createClient({
          ...options,
          bootstrap: bootstrap ?? options?.bootstrap,
          autoConnect: false,
        } as ClientOptions)
      : undefined,
  );
  const client = (props.client ?? own) as Client;

  useEffect(() => {
    own?.connect();
    return () => own?.close();
  }, [own]);

  // The client ignores an equal context, which an application may create for each rendering.
  const context = options?.context;
  useEffect(() => {
    void own?.setContext(context);
  }, [own, context]);

  const serverFlags = bootstrap ?? client.bootstrap;
  const provided = useMemo(() => ({ client, serverFlags }), [client, serverFlags]);
  return createElement(HalyardContext.Provider, { value: provided }, children);
}

let withoutProvider: Provided | undefined;

/** Returns the client of the nearest provider. Without one, all fallbacks apply and an error is logged once. */
export function useProvided(): Provided {
  const provided = useContext(HalyardContext);
  if (provided !== undefined) return provided;
  if (withoutProvider === undefined) {
    console.error("Halyard: a hook was called outside of HalyardProvider; all fallbacks apply.");
    withoutProvider = { client: createTestClient(), serverFlags: {} };
  }
  return withoutProvider;
}
