// Reads behind the end of an array, in a function that another calls.

import { print } from "../../../../sdk/assemblyscript/wasi";

function pick(list: i32[], at: i32): i32 {
  return list[at];
}

export function _start(): void {
  print(pick([1, 2, 3], 42).toString());
}
