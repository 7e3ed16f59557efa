// The examples of guests/languages in AssemblyScript: EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT.

import { args, fail } from "../../../sdk/assemblyscript/wasi";
import { Options } from "./common";
import * as pingpong from "./pingpong";
import * as kv from "./kv";
import * as negotiate from "./negotiate";

export function _start(): void {
  const words = args();
  if (words.length < 3) fail("EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT");
  const options = new Options(words);
  const what = words[0] + " " + words[1];
  if (what == "pingpong server") pingpong.serve(options);
  else if (what == "pingpong client") pingpong.ask(options);
  else if (what == "kv server") kv.serve(options);
  else if (what == "kv client") kv.ask(options);
  else if (what == "negotiate server") negotiate.serve(options);
  else if (what == "negotiate client") negotiate.ask(options);
  else fail("pingpong, kv or negotiate; server or client");
}
