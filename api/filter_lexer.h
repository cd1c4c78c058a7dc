#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/property_value.h"
#include "engine/base/status.h"

namespace partita {

// A word, sign or literal of `$filter` text.
struct FilterToken {
  enum class Kind : uint8_t {
    kEnd,
    kWord,     // A name, operator or keyword, read whole.
    kLiteral,  // With its value.
    kOpen,
    kClose,
    kComma,
    kUnknown,    // Nothing that the language has.
    kMalformed,  // A literal whose contents are not of its type: FilterLexer::fault().
  };
  Kind kind = Kind::kEnd;
  std::string_view text;  // As written.
  size_t end = 0;         // Bytes up to its end.
  PropertyValue value;
};

// The Double that a word can stand for, as .NET's LINQ writes it: `INF`, `-INF` or `NaN`, with an `f` behind
// it when it was of single precision. The parser tells it from a property of that name.
std::optional<double> DoubleOfWord(std::string_view word);

// Cuts `$filter` text into tokens (spec 11.1, 11.2). `text` is UTF-8 and outlives it.
class FilterLexer {
 public:
  explicit FilterLexer(std::string_view text) : text_(text) {}

  FilterToken Next();
  // Whether the next token is an opening parenthesis.
  bool OpensNext() const;

  // Why the last token was kMalformed.
  const Status& fault() const { return fault_; }

  // " at position 5 in 'a eq null'." for byte `offset`: the position is in UTF-16 units from 0.
  std::string Place(size_t offset) const;

  // The refusal of spec 11.1: the parser stopped at byte `offset`.
  Status SyntaxError(size_t offset) const;

 private:
  char At(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  void SkipSpace();
  size_t WordEnd(size_t from) const;
  FilterToken Finish(FilterToken::Kind kind, size_t end);
  FilterToken String();
  FilterToken Number();
  FilterToken Word();
  FilterToken Typed(PropertyType type, size_t quote);
  FilterToken Valued(PropertyValue value, size_t end);
  FilterToken Malformed(PropertyType type, size_t end);

  std::string_view text_;
  size_t at_ = 0;  // Where the token being read begins, or the next one.
  Status fault_;
};

}  // namespace partita
