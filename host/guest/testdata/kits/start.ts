// Traps in _start itself, with an object of the collector's.

import "../../../../sdk/assemblyscript/wasi";

export function _start(): void {
  const list = new StaticArray<i32>(4);
  store<i32>(0xfffffff0, list.length);
}
