// Which operation of a select can be done at once. For selects that send copies, which are made only if they are
// needed: the chosen operation is done by itself afterwards, and if another party was faster, select chooses again.

#include "api/src/select_workspace.hpp"
#include "weft/select.hpp"

namespace weft::detail {

std::size_t chan_choose(const select_op* ops, std::size_t count) {
  workspace ws(count);
  rt::runtime_scope scope;
  shuffle(ws.order, count, randomness(scope.m()));
  ws.add_locks_of(ops, count);
  ws.lock_all();
  const std::uint32_t *begin = ws.order, *end = begin + count;
  const std::uint32_t* chosen = std::find_if(begin, end, [=](std::uint32_t k) {
    return ops[k].chan && (ops[k].send ? ops[k].chan->ready_to_send() : ops[k].chan->ready_to_recv());
  });
  ws.unlock_all();
  return chosen == end ? select_outcome::none : *chosen;
}

}  // namespace weft::detail
